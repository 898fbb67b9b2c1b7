"""Finds the compiled library, checks that it fits this torch, and loads its ops."""
import json
import os
from pathlib import Path
from typing import Optional

import torch

REBUILD = ("Build it for this torch: `pip install --no-build-isolation --force-reinstall .` in "
           "hdetach's source folder, or name a library that fits by HDETACH_LIBRARY=PATH.")


def find() -> Path:
    """The library's path: the one HDETACH_LIBRARY names, else the one in the package."""
    named = os.environ.get("HDETACH_LIBRARY")
    path = Path(named) if named else Path(__file__).with_name("libhdetach.so")
    if path.is_file():
        return path.resolve() if named else path
    if named:
        raise ImportError(f"hdetach: HDETACH_LIBRARY is {named}, and there is no such file.")
    raise ImportError(f"hdetach: this package has no compiled library ({path}). {REBUILD}")


def built_with(library: Path) -> Optional[str]:
    """The torch version that the library was built with, where the package wrote it down."""
    note = library.with_suffix(".json")
    return json.loads(note.read_text())["torch"] if note.is_file() else None


def _release(version: str) -> str:
    """'2.11.0+cu130' -> '2.11': torch's C++ interface may change with every minor release."""
    return ".".join(version.split("+")[0].split(".")[:2])


def check(library: Path, torch_version: str) -> None:
    """Raises ImportError when the library is known to be built with another torch release."""
    built = built_with(library)
    if built is not None and _release(built) != _release(torch_version):
        raise ImportError(f"hdetach: {library} was built with torch {built}, but this is torch "
                          f"{torch_version}. {REBUILD}")


def load() -> str:
    """Loads the ops into torch.ops.hdetach and returns the library's path."""
    library = find()
    check(library, torch.__version__)
    try:
        torch.ops.load_library(str(library))
    except OSError as error:  # an undefined symbol, most often: another torch's interface
        raise ImportError(f"hdetach: {library} does not load into torch {torch.__version__}: "
                          f"{error}. {REBUILD}") from error
    return str(library)
