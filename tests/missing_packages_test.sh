#!/bin/sh
# ./run where packages are missing and apt-get cannot fetch them: it names them and ends with 1.
# dpkg-query, apt-get and the like are stand-ins, so that nothing of the machine counts.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/bin"

stand_in() {  # NAME; its script comes from the input
  { echo '#!/bin/sh'; cat; } >"$folder/bin/$1"
  chmod +x "$folder/bin/$1"
}
stand_in id <<'EOF'
echo 0
EOF
stand_in dpkg-query <<'EOF'
for name; do :; done
case $name in
  g++ | clang-format) exit 1 ;;
  *) printf 'install ok installed' ;;
esac
EOF

fail() {
  echo "$1"
  cat "$folder/out"
  exit 1
}
expect_named() {  # what apt-get cannot do
  code=0
  PATH="$folder/bin:$PATH" CMAKE_PREFIX_PATH=/nowhere "$here/run" test >"$folder/out" 2>&1 || code=$?
  [ $code -eq 1 ] || fail "apt-get $1 fails: ./run ended with $code and not with 1"
  grep -qx 'run: could not install the Debian packages: g++ clang-format' "$folder/out" ||
    fail "apt-get $1 fails: ./run does not name the packages"
  grep -q 'as root: apt-get update && apt-get install g++ clang-format$' "$folder/out" ||
    fail "apt-get $1 fails: ./run does not say what to do"
}

stand_in apt-get <<'EOF'
echo "E: Could not resolve 'deb.debian.org'" >&2
exit 100
EOF
expect_named update
stand_in apt-get <<'EOF'
[ "$1" = update ] && exit 0
echo 'E: Unable to locate package g++' >&2
exit 100
EOF
expect_named install
