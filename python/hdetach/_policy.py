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


def _check_draw(generator: torch.Generator, device: torch.device) -> None:
    """Raises where a draw from `generator` would be silently another one than it should be."""
    on_host = generator.device.type == "cpu" and device.type == "cuda"
    if on_host and torch.cuda.is_current_stream_capturing():
        raise RuntimeError(
            "hdetach: generator is on the CPU, and a CUDA graph is being captured: the draw would "
            "be frozen into the graph, and every replay would block the same steps. Set "
            "generator=None (the GPU's default generator draws anew at every replay), or pass "
            "scales= in a tensor on the GPU that you fill before each replay")
    # Checkpointing restores torch's own generators.
    of_torch = (torch.default_generator, *torch.cuda.default_generators)
    if torch.ops.hdetach.in_backward_pass() and not any(generator is each for each in of_torch):
        raise RuntimeError(
            "hdetach: forward runs inside a backward pass, as activation checkpointing does to "
            "recompute it. A draw from generator there would be another one than the first pass "
            "had, and the gradient that of another draw. Set generator=None (checkpoint restores "
            "torch's default generators), or draw outside and pass scales=module.draw_scales(...)")


def draw_keep_from(generator: torch.Generator, shape: List[int], detach: float,
                   device: torch.device) -> Tensor:
    """As `draw_keep`, from a generator that may live on another device than the input."""
    _check_draw(generator, device)
    keep = torch.empty(shape, dtype=torch.float32, device=generator.device)
    keep.bernoulli_(1.0 - detach, generator=generator)
    if keep.device.type == "cpu" and device.type == "cuda":
        # From pinned memory the copy is queued, so neither the host nor the device waits.
        keep = keep.pin_memory()
    return keep.to(device, non_blocking=True)
