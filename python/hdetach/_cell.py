"""torch.nn.LSTMCell with a gradient policy."""
from typing import Any, List, Optional, Tuple

import torch
from torch import Tensor, nn

from ._checks import check_sizes
from ._policy import CellScales, check_detach
from ._steered import Steered, share_parameters


class LSTMCell(Steered, nn.LSTMCell):
    r"""A `torch.nn.LSTMCell` that trains with h-detach: each call blocks the gradient into h with
    probability `detach`. The forward pass never changes; in eval mode or with ``detach=0`` it is a
    plain LSTMCell.

    Takes the arguments of `torch.nn.LSTMCell` and the policy arguments of `hdetach.LSTM`, less
    ``layers_policy``: stacked cells share a draw when they are given the same `scales`.

    Inputs: input, hx=None, scales=None
        - **input**: [B, I], or unbatched [I].
        - **hx**: (h, c), each [B, H], or [H] when unbatched. Default: zeros.
        - **scales**: (h_scale, c_scale) instead of a draw, in eval mode too; each [] for the batch
          or [B] for each row, in [0, 1], or None for ones.

    Outputs: (h, c), as hx.
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None,
                 dtype: Any = None, *, detach: float = 0.0, path: str = "hidden",
                 mode: str = "detach", per_sample: bool = False,
                 generator: Optional[torch.Generator] = None) -> None:
        super().__init__(input_size, hidden_size, bias, device=device, dtype=dtype)
        self._set_policy(detach, path, mode, per_sample, generator)

    @classmethod
    def from_torch(cls, module: nn.LSTMCell, **policy: Any) -> "LSTMCell":
        """An LSTMCell with the options, mode and (shared, not copied) parameters of `module`."""
        if not isinstance(module, nn.LSTMCell):
            raise TypeError(f"from_torch takes a torch.nn.LSTMCell, not {type(module).__name__}")
        return _share(module, cls, **policy)

    def to_torch(self) -> nn.LSTMCell:
        """A torch.nn.LSTMCell with the same options, mode and (shared) parameters."""
        return _share(self, nn.LSTMCell)

    def extra_repr(self) -> str:
        return super().extra_repr() + self._policy_repr()

    def draw_scales(self, batch: int, device: Optional[torch.device] = None) -> CellScales:
        """The scales that `forward` would draw next for this many rows: a pair of [] or, with
        per_sample, [B]; None for ones. No draw in eval mode and with detach 0."""
        if not self.training or self.detach == 0.0:
            return None, None
        check_detach(self.detach)
        where = self.weight_ih.device if device is None else device
        shape: List[int] = []
        if self.per_sample:
            shape.append(batch)
        if self.detach_mode == "damp":
            scale = torch.full([], 1.0 - self.detach, dtype=torch.float32, device=where)
        else:
            scale = self._draw_keep(shape, where)
        if self.path == "hidden":
            return scale, None
        return None, scale

    def forward(self, input: Tensor, hx: Optional[Tuple[Tensor, Tensor]] = None,
                scales: Optional[CellScales] = None) -> Tuple[Tensor, Tensor]:
        batched = input.dim() == 2
        if not batched and input.dim() != 1:
            raise ValueError(f"LSTMCell: Expected input to be 1D or 2D, got {input.dim()}D instead")
        x = input if batched else input.unsqueeze(0)
        if hx is None:
            h = torch.zeros([x.size(0), self.hidden_size], dtype=x.dtype, device=x.device)
            c = h
        else:
            h = hx[0] if batched else hx[0].unsqueeze(0)
            c = hx[1] if batched else hx[1].unsqueeze(0)
        if torch.jit.is_scripting() or not torch.jit.is_tracing():  # a trace would keep the sizes
            check_sizes(x, self.input_size, (h, c), [x.size(0), self.hidden_size])
        given = self.draw_scales(x.size(0), x.device) if scales is None else scales
        h, c = torch.ops.hdetach.lstm_cell(x, h, c, self.weight_ih, self.weight_hh, self.bias_ih,
                                           self.bias_hh, given[0], given[1])
        if not batched:
            return h.squeeze(0), c.squeeze(0)
        return h, c


def _share(module: nn.LSTMCell, cls: Any, **policy: Any) -> Any:
    """A `cls` with the options and the very parameters of `module`."""
    names = ["weight_ih", "weight_hh"] + (["bias_ih", "bias_hh"] if module.bias else [])
    made = cls(module.input_size, module.hidden_size, bias=module.bias, device="meta", **policy)
    return share_parameters(module, made, names)
