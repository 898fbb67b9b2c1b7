#!/bin/sh
# Installs a build tree into an empty prefix, then builds and runs a project that finds it there.
# Usage: install_test.sh BUILD_DIR [cmake arguments of the consumer, e.g. -DTorch_DIR=...]
set -eu
build=$1
shift
here=$(cd "$(dirname "$0")" && pwd)
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT

cmake --install "$build" --prefix "$prefix/installed" >"$prefix/log" || { cat "$prefix/log"; exit 1; }
# The copy stands elsewhere, so that nothing is found beside our sources by accident.
cp -r "$here/consumer" "$prefix/consumer"
cmake -S "$prefix/consumer" -B "$prefix/build" -DCMAKE_PREFIX_PATH="$prefix/installed" \
      -DCMAKE_FIND_PACKAGE_NO_PACKAGE_REGISTRY=ON "$@"
found=$(sed -n 's/^hdetach_DIR:PATH=//p' "$prefix/build/CMakeCache.txt")
case $found in
  "$prefix"/installed/*) ;;
  *) echo "find_package(hdetach) found $found instead of the installed tree"; exit 1 ;;
esac
cmake --build "$prefix/build"
"$prefix/build/consumer"
program=$prefix/installed/bin/hdetach
[ ! -x "$program" ] || "$program" info
