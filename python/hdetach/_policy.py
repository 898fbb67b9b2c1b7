"""The policy in Python: which steps keep their gradient, drawn where and as PyTorch draws dropout.

The functions that modules call in `forward` are written so that TorchScript and torch.compile take
them.
"""
from typing import List, Optional, Tuple

import torch
from torch import Tensor

# What LSTM.forward takes as `scales`: (h_scale, c_scale), one entry for each layer and direction,
# each [T] or [T, B] in [0, 1], or None for ones. An empty list means ones everywhere.
Scales = Tuple[List[Optional[Tensor]], List[Optional[Tensor]]]
# What LSTMCell.forward takes: (h_scale, c_scale), each [] or [B], or None for ones.
CellScales = Tuple[Optional[Tensor], Optional[Tensor]]

_CHOICES = {"path": ("hidden", "cell"), "mode": ("detach", "damp"),
            "layers_policy": ("joint", "separate")}


def check_choice(name: str, value: str) -> str:
    """`value` where it is one of the words that the policy argument `name` may be."""
    if value not in _CHOICES[name]:
        words = " or ".join(map(repr, _CHOICES[name]))
        raise ValueError(f"{name} is {value!r}; it must be {words}")
    return value


def check_detach(detach: float) -> float:
    """`detach` where it is a probability. Written so that NaN fails."""
    if not (detach >= 0.0 and detach <= 1.0):
        raise ValueError(f"detach is {detach}; it must be in [0, 1]")
    return detach


def draw_keep(shape: List[int], detach: float, device: torch.device) -> Tensor:
    """0 with probability `detach`, else 1, float32, from the default generator of `device`."""
    return torch.empty(shape, dtype=torch.float32, device=device).bernoulli_(1.0 - detach)


def draw_keep_from(generator: torch.Generator, shape: List[int], detach: float,
                   device: torch.device) -> Tensor:
    """As `draw_keep`, from a generator that may live on another device than the input."""
    keep = torch.empty(shape, dtype=torch.float32, device=generator.device)
    keep.bernoulli_(1.0 - detach, generator=generator)
    if keep.device.type == "cpu" and device.type == "cuda":
        # From pinned memory the copy is queued, so neither the host nor the device waits.
        keep = keep.pin_memory()
    return keep.to(device, non_blocking=True)
