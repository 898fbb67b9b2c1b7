"""The build backend of `pip install .` (PEP 517): builds libhdetach with CMake against the torch
that is installed, and puts it into a wheel beside the Python files.

HDETACH_LIBRARY=PATH packs that library instead of building one; CMAKE_ARGS is passed on to CMake.
"""
import base64
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python" / "hdetach"


def version() -> str:
    return re.search(r"project\(hdetach VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())[1]


def installed_torch() -> dict:
    """Version and CMake folder of the torch that this Python has."""
    ask = ("import json, torch, torch.utils; print(json.dumps({'version': torch.__version__, "
           "'cmake': torch.utils.cmake_prefix_path}))")
    # pip's isolated build hides the installed packages by these two variables.
    open_air = {name: value for name, value in os.environ.items()
                if name not in ("PYTHONPATH", "PYTHONNOUSERSITE")}
    for environment in (os.environ, open_air):
        answer = subprocess.run([sys.executable, "-c", ask], env=environment, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if answer.returncode == 0:
            return json.loads(answer.stdout.splitlines()[-1])
    raise RuntimeError("hdetach is built against the torch that is installed, and "
                       f"{sys.executable} cannot import torch:\n{answer.stderr}")


def build_library(torch: dict) -> Path:
    named = os.environ.get("HDETACH_LIBRARY")
    if named:
        return Path(named).resolve()
    if shutil.which("cmake") is None:
        raise RuntimeError("hdetach is built with CMake 3.25 or later, and there is no cmake here "
                           "(Debian: apt-get install cmake ninja-build g++)")
    folder = ROOT / "build" / f"pip-torch-{torch['version']}"
    configure = ["cmake", "-S", str(ROOT), "-B", str(folder), "-DCMAKE_BUILD_TYPE=Release",
                 "-DHDETACH_BUILD_PROGRAM=OFF", "-DCMAKE_UNITY_BUILD=ON",
                 "-DCMAKE_UNITY_BUILD_BATCH_SIZE=8"]
    if shutil.which("ninja"):
        configure += ["-G", "Ninja"]
    if Path(torch["cmake"]).is_dir():  # Debian's torch has its CMake files where CMake looks anyway
        configure.append(f"-DCMAKE_PREFIX_PATH={torch['cmake']}")
    configure += shlex.split(os.environ.get("CMAKE_ARGS", ""))
    subprocess.run(configure, check=True)
    subprocess.run(["cmake", "--build", str(folder), "--target", "hdetach", "--parallel",
                    str(os.cpu_count() or 1)], check=True)
    return (folder / "libhdetach.so").resolve()


def metadata() -> str:
    project = (ROOT / "pyproject.toml").read_text()

    def field(name: str) -> str:
        return re.search(rf'^{name} = "(.*)"', project, re.MULTILINE)[1]

    readme = (ROOT / field("readme")).read_text()
    return (f"Metadata-Version: 2.1\nName: hdetach\nVersion: {version()}\n"
            f"Summary: {field('description')}\nLicense: Apache-2.0\n"
            f"Requires-Python: {field('requires-python')}\n"
            f"Description-Content-Type: text/markdown\n\n{readme}")


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None) -> str:
    torch = installed_torch()
    library = build_library(torch)
    # The library is loaded by torch, not linked to Python: one wheel for every Python 3.
    tag = "py3-none-" + re.sub(r"[-.]", "_", sysconfig.get_platform())
    info = f"hdetach-{version()}.dist-info"
    files = {f"hdetach/{path.name}": path.read_bytes() for path in sorted(PACKAGE.iterdir())
             if path.suffix in (".py", ".typed")}
    files["hdetach/libhdetach.so"] = library.read_bytes()
    files["hdetach/libhdetach.json"] = json.dumps({"torch": torch["version"]}).encode()
    files[f"{info}/METADATA"] = metadata().encode()
    files[f"{info}/LICENSE"] = (ROOT / "LICENSE").read_bytes()
    files[f"{info}/WHEEL"] = (f"Wheel-Version: 1.0\nGenerator: hdetach_backend\n"
                              f"Root-Is-Purelib: false\nTag: {tag}\n").encode()
    record = ""
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(data)}\n"
    files[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode()

    name = f"hdetach-{version()}-{tag}.whl"
    with zipfile.ZipFile(Path(wheel_directory) / name, "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, data in files.items():
            wheel.writestr(path, data)
    return name


def build_sdist(sdist_directory, config_settings=None) -> str:
    base = f"hdetach-{version()}"
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, text=True,
                            stdout=subprocess.PIPE).stdout.splitlines()
    wanted = re.compile(r"(cmake|include|python|src)/|CMakeLists.txt$|LICENSE$|README.md$|"
                        r"pyproject.toml$|docs/python.md$")
    with tarfile.open(Path(sdist_directory) / f"{base}.tar.gz", "w:gz") as archive:
        for name in filter(wanted.match, listed):
            archive.add(ROOT / name, f"{base}/{name}")
        note = Path(sdist_directory) / "PKG-INFO"
        note.write_text(metadata())
        archive.add(note, f"{base}/PKG-INFO")
        note.unlink()
    return f"{base}.tar.gz"
