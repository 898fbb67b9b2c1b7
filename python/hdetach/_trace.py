"""The stack of layers for torch.jit.trace, whose tracer knows no list of optional tensors."""
import functools
from typing import Any, List, Optional, Tuple

import torch
from torch import Tensor


def _stack(x: Tensor, h0: Tensor, c0: Tensor, weights: List[Tensor], bias: bool, num_layers: int,
           dropout: float, training: bool, bidirectional: bool, h_scale: List[Tensor],
           c_scale: List[Tensor], batch_sizes: Optional[Tensor],
           sorted_indices: Optional[Tensor], return_cells: bool
           ) -> Tuple[Tensor, Tuple[Tensor, Tensor], List[Tensor]]:
    h_scales: List[Optional[Tensor]] = []
    c_scales: List[Optional[Tensor]] = []
    for scale in h_scale:
        h_scales.append(scale)
    for scale in c_scale:
        c_scales.append(scale)
    output, h_n, c_n, cells = torch.ops.hdetach.lstm_stack(
        x, h0, c0, weights, bias, num_layers, dropout, training, bidirectional, h_scales, c_scales,
        batch_sizes, sorted_indices, return_cells)
    return output, (h_n, c_n), cells


@functools.lru_cache(maxsize=None)
def _scripted() -> Any:
    return torch.jit.script(_stack)


def traced_stack(x: Tensor, h0: Tensor, c0: Tensor, weights: List[Tensor], bias: bool,
                 num_layers: int, dropout: float, training: bool, bidirectional: bool,
                 h_scale: List[Optional[Tensor]], c_scale: List[Optional[Tensor]],
                 batch_sizes: Optional[Tensor], sorted_indices: Optional[Tensor], return_cells: bool
                 ) -> Tuple[Tensor, Tuple[Tensor, Tensor], List[Tensor]]:
    """hdetach::lstm_stack as a scripted function inside the trace."""
    steps = x.size(0) if batch_sizes is None else batch_sizes.size(0)
    ones = torch.ones(steps, device=x.device)
    h_given = [ones if scale is None else scale for scale in h_scale]
    c_given = [ones if scale is None else scale for scale in c_scale]
    return _scripted()(x, h0, c0, weights, bias, num_layers, dropout, training, bidirectional,
                       h_given, c_given, batch_sizes, sorted_indices, return_cells)
