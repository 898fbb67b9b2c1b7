"""`python -m hdetach.info [--json]`: versions, the library, and the kernels of this machine."""
import argparse
import json
import platform
from pathlib import Path
from typing import Any, Dict

import torch

import hdetach
from hdetach._library import built_with


def collect() -> Dict[str, Any]:
    """What the command prints, as a dictionary."""
    kernels = []
    for line in torch.ops.hdetach.kernels():
        name, device, available, reason = line.split("\t")
        kernels.append({"name": name, "device": device, "available": available == "yes",
                        "reason": reason})
    return {
        "hdetach": hdetach.__version__,
        "library": hdetach.loaded_from,
        "built_with_torch": built_with(Path(hdetach.loaded_from)),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "python": platform.python_version(),
        "threads": torch.get_num_threads(),
        "active_kernel": torch.ops.hdetach.active_kernel(),
        "kernels": kernels,
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m hdetach.info", description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object instead of lines")
    found = collect()
    if parser.parse_args().json:
        print(json.dumps(found))
        return
    kernels = found.pop("kernels")
    for name, value in found.items():
        print(f"{name:17} {'-' if value is None else value}")
    for kernel in kernels:
        state = "yes" if kernel["available"] else f"no: {kernel['reason']}"
        print(f"kernel {kernel['name']:18} {kernel['device']:9} {state}")


if __name__ == "__main__":
    main()
