"""The ops as functions. They are the same that the C++ library calls."""
from typing import List, Optional, Tuple

import torch
from torch import Tensor

from ._policy import Scales


def lstm(x: Tensor, h0: Tensor, c0: Tensor, w_ih: Tensor, w_hh: Tensor,
         b_ih: Optional[Tensor] = None, b_hh: Optional[Tensor] = None,
         h_scale: Optional[Tensor] = None, c_scale: Optional[Tensor] = None,
         lengths: Optional[Tensor] = None) -> Tuple[Tensor, Tensor]:
    """One LSTM layer over a sequence, with a scale for the gradient of each step.

    Step t multiplies the gradient that it sends into h[t-1] by h_scale[t] and into c[t-1] by
    c_scale[t]. The forward pass never reads the scales.

    Args:
        x: [T, B, I], float32 or float64.
        h0, c0: [B, H], the initial states.
        w_ih, w_hh: [4H, I] and [4H, H], gates in torch.nn.LSTM's order (i, f, g, o).
        b_ih, b_hh: [4H] or None.
        h_scale, c_scale: [T], or [T, B] for each row of the batch, in [0, 1]; None means ones.
        lengths: [B] int64, each in 1..T; None means T. Past a row's length h and c are zero and
            take no gradient.

    Returns:
        (h, c), both [T, B, H]: every hidden and every cell state, both differentiable.
    """
    return torch.ops.hdetach.lstm(x, h0, c0, w_ih, w_hh, b_ih, b_hh, h_scale, c_scale, lengths)


def lstm_cell(x: Tensor, h: Tensor, c: Tensor, w_ih: Tensor, w_hh: Tensor,
              b_ih: Optional[Tensor] = None, b_hh: Optional[Tensor] = None,
              h_scale: Optional[Tensor] = None,
              c_scale: Optional[Tensor] = None) -> Tuple[Tensor, Tensor]:
    """One step of `lstm`.

    Args:
        x: [B, I].
        h, c: [B, H], the previous states.
        w_ih, w_hh, b_ih, b_hh: as in `lstm`.
        h_scale, c_scale: [] for the batch or [B] for each row, in [0, 1]; None means ones.

    Returns:
        (h, c), both [B, H].
    """
    return torch.ops.hdetach.lstm_cell(x, h, c, w_ih, w_hh, b_ih, b_hh, h_scale, c_scale)


def sample_scales(steps: int, batch: int = 1, layers: int = 1, detach: float = 0.0,
                  path: str = "hidden", mode: str = "detach", layers_policy: str = "joint",
                  per_sample: bool = False, seed: int = 0, drawn: int = 0) -> Tuple[Scales, int]:
    """Draws scales as the C++ library does: number n depends on `seed` and n alone, on any machine.

    Args:
        steps, batch: T and B of the input.
        layers: num_layers * num_directions of the LSTM.
        detach: the probability that a step is blocked (mode 'detach'), or 1 minus the factor of
            every step (mode 'damp').
        path: 'hidden' steers h_scale, 'cell' c_scale.
        layers_policy: 'joint' draws once for all layers, 'separate' for each.
        per_sample: scales [T, B], drawn for each row, instead of [T].
        seed, drawn: the generator's state: `drawn` numbers of the stream `seed` are used up.

    Returns:
        (scales, drawn): what `LSTM.forward` takes as `scales`, on the CPU, and the new `drawn`.
    """
    h_scale, c_scale, drawn = torch.ops.hdetach.sample_scales(
        steps, batch, layers, detach, path, mode, layers_policy, per_sample, seed, drawn)
    no_scales: List[Optional[Tensor]] = []
    h_scales: List[Optional[Tensor]] = no_scales + h_scale
    c_scales: List[Optional[Tensor]] = no_scales + c_scale
    return (h_scales, c_scales), drawn
