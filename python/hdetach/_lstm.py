"""torch.nn.LSTM with a gradient policy."""
from typing import Any, List, Optional, Tuple, overload

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from ._checks import check_sizes, check_types
from ._policy import Scales, check_choice, check_detach
from ._steered import Steered, share_parameters


# Not a subclass of nn.LSTM but of its base: torch.compile breaks the graph at every nn.LSTM.
class LSTM(Steered, nn.RNNBase):
    r"""A `torch.nn.LSTM` that trains with h-detach: the gradient into h[t-1] is blocked at random
    steps. The forward pass never changes; in eval mode or with ``detach=0`` it is a plain LSTM.

    Takes the arguments of `torch.nn.LSTM` (``proj_size`` must be 0), and has its attributes,
    parameter names, initial weights and state_dict. Keyword arguments for the policy:

    Args:
        detach: the probability that a step is blocked. Default: 0, a plain LSTM.
        path: 'hidden' steers the gradient into h[t-1], 'cell' that into c[t-1].
        mode: 'detach' blocks at random; 'damp' multiplies every step's gradient by 1 - detach.
            Kept as the attribute `detach_mode`.
        layers_policy: 'joint' draws once for all layers and directions, 'separate' for each.
        per_sample: draw for each row of the batch instead of once for all.
        generator: where the draw comes from. None: the default generator of the input's device, as
            dropout draws, so that `torch.manual_seed` repeats a run. A CPU generator gives the same
            draws on every device.

    Nothing is drawn in eval mode, with ``detach=0`` or with ``mode='damp'``.

    Inputs: input, hx=None, scales=None, return_cells=False
        - **input**: [T, B, I], or [B, T, I] with batch_first, or unbatched [T, I], or a
          PackedSequence, sorted or not.
        - **hx**: (h_0, c_0), each [num_layers * num_directions, B, H], without B when unbatched.
          Default: zeros.
        - **scales**: (h_scale, c_scale) instead of a draw, in eval mode too: two lists with an
          entry for each layer and direction (layer * num_directions + direction), each [T] or
          [T, B] in [0, 1], or None for ones; an empty list means ones. Scale t is that of the
          direction's t-th step: the reverse direction starts at the end. Columns are in the order
          of the batch before sorting.
        - **return_cells**: also return the cell states. Not in TorchScript.

    Outputs: output, (h_n, c_n) as torch.nn.LSTM's, and with return_cells a third, ``cells``: a list
    with the cell states of each layer, laid out as output (a PackedSequence for packed input).

    Example::

        lstm = hdetach.LSTM(10, 128, num_layers=2, detach=0.25)
        output, (h_n, c_n) = lstm(torch.randn(100, 32, 10))
    """

    layers_policy: str

    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True,
                 batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False,
                 proj_size: int = 0, device: Any = None, dtype: Any = None, *, detach: float = 0.0,
                 path: str = "hidden", mode: str = "detach", layers_policy: str = "joint",
                 per_sample: bool = False, generator: Optional[torch.Generator] = None) -> None:
        if proj_size != 0:
            raise ValueError(f"hdetach.LSTM: proj_size is {proj_size}; projections are not "
                             "supported, leave it at 0")
        super().__init__("LSTM", input_size, hidden_size, num_layers, bias, batch_first, dropout,
                         bidirectional, proj_size, device=device, dtype=dtype)
        self._set_policy(detach, path, mode, per_sample, generator)
        self.layers_policy = check_choice("layers_policy", layers_policy)

    @classmethod
    def from_torch(cls, module: nn.LSTM, **policy: Any) -> "LSTM":
        """An LSTM with the options, mode and parameters of `module`.

        The parameters are shared, not copied: an optimizer made for `module` goes on working. Take
        `copy.deepcopy(module)` for a second set.

        Args:
            module: a torch.nn.LSTM (or an hdetach.LSTM) without proj_size or parametrizations.
            **policy: this class's policy arguments.
        """
        if not isinstance(module, nn.RNNBase) or module.mode != "LSTM":
            raise TypeError(f"from_torch takes a torch.nn.LSTM, not {type(module).__name__}")
        return _share(module, cls, **policy)

    def to_torch(self) -> nn.LSTM:
        """A torch.nn.LSTM with the same options, mode and (shared) parameters."""
        made = _share(self, nn.LSTM)
        made.flatten_parameters()  # cuDNN wants one block of memory; a no-op elsewhere
        return made

    def extra_repr(self) -> str:
        text = super().extra_repr() + self._policy_repr()
        joint = self.detach == 0.0 or self.layers_policy == "joint"
        return text if joint else f"{text}, layers_policy={self.layers_policy}"

    def draw_scales(self, steps: int, batch: int,
                    device: Optional[torch.device] = None) -> Scales:
        """The scales that `forward` would draw next for this many steps and rows.

        Returns:
            What `forward` takes as `scales`, on `device` (default: the weights'). Two empty lists,
            and no draw, in eval mode and with detach 0.
        """
        h_scale: List[Optional[Tensor]] = []
        c_scale: List[Optional[Tensor]] = []
        if not self.training or self.detach == 0.0:
            return h_scale, c_scale
        check_detach(self.detach)
        where = self._weights()[0].device if device is None else device
        entries = self.num_layers * (2 if self.bidirectional else 1)
        draws = entries if self.layers_policy == "separate" else 1
        shape = [draws, steps, batch] if self.per_sample else [draws, steps]
        if self.detach_mode == "damp":
            scale = torch.full([1, steps], 1.0 - self.detach, dtype=torch.float32, device=where)
        else:
            scale = self._draw_keep(shape, where)
        drawn = scale.unbind(0)
        for entry in range(entries):
            # A joint draw is one tensor, which the op moves and converts once.
            steered = drawn[entry % len(drawn)]
            if self.path == "hidden":
                h_scale.append(steered)
            else:
                c_scale.append(steered)
        return h_scale, c_scale

    @overload  # type: ignore[override]
    @torch._jit_internal._overload_method
    def forward(self, input: Tensor, hx: Optional[Tuple[Tensor, Tensor]] = None,
                scales: Optional[Scales] = None, return_cells: bool = False
                ) -> Tuple[Tensor, Tuple[Tensor, Tensor]]:
        pass

    @overload
    @torch._jit_internal._overload_method
    def forward(self, input: PackedSequence,  # noqa: F811
                hx: Optional[Tuple[Tensor, Tensor]] = None, scales: Optional[Scales] = None,
                return_cells: bool = False
                ) -> Tuple[PackedSequence, Tuple[Tensor, Tensor]]:
        pass

    def forward(self, input, hx=None, scales=None, return_cells=False):  # noqa: F811
        if torch.jit.is_scripting():
            if return_cells:
                raise RuntimeError("LSTM: return_cells is not available in TorchScript")
        else:
            check_types(input, hx, scales)
        # TorchScript compiles one branch for each overload.
        if isinstance(input, PackedSequence):
            data, hidden, cells = self._forward_packed(input, hx, scales, return_cells)
            output = _packed_like(input, data)
            if torch.jit.is_scripting():
                return output, hidden
            if return_cells:
                return output, hidden, [_packed_like(input, cell) for cell in cells]
            return output, hidden
        else:
            result, hidden, cells = self._forward_dense(input, hx, scales, return_cells)
            if torch.jit.is_scripting():
                return result, hidden
            if return_cells:
                return result, hidden, cells
            return result, hidden

    def _forward_dense(self, input: Tensor, hx: Optional[Tuple[Tensor, Tensor]],
                       scales: Optional[Scales], return_cells: bool
                       ) -> Tuple[Tensor, Tuple[Tensor, Tensor], List[Tensor]]:
        batched = input.dim() == 3
        if not batched and input.dim() != 2:
            raise ValueError(f"LSTM: Expected input to be 2D or 3D, got {input.dim()}D instead")
        swapped = batched and self.batch_first
        x = input.transpose(0, 1) if swapped else (input if batched else input.unsqueeze(1))
        if hx is not None:
            h_dim, c_dim, dim = hx[0].dim(), hx[1].dim(), input.dim()
            if h_dim != dim or c_dim != dim:
                kind = "batched 3-D" if batched else "unbatched 2-D"
                raise RuntimeError(f"For {kind} input, hx and cx should also be {dim}-D but got "
                                   f"({h_dim}-D, {c_dim}-D) tensors")
            if not batched:
                hx = (hx[0].unsqueeze(1), hx[1].unsqueeze(1))
        output, hidden, cells = self._run(x, x.size(0), x.size(1), hx, None, None, scales,
                                          return_cells)
        if swapped:
            return output.transpose(0, 1), hidden, [cell.transpose(0, 1) for cell in cells]
        if not batched:
            return (output.squeeze(1), (hidden[0].squeeze(1), hidden[1].squeeze(1)),
                    [cell.squeeze(1) for cell in cells])
        return output, hidden, cells

    def _forward_packed(self, input: PackedSequence, hx: Optional[Tuple[Tensor, Tensor]],
                        scales: Optional[Scales], return_cells: bool
                        ) -> Tuple[Tensor, Tuple[Tensor, Tensor], List[Tensor]]:
        data, batch_sizes, order, _ = input
        if data.dim() != 2:
            raise RuntimeError(f"input must have 2 dimensions, got {data.dim()}")
        # Only where it is used: reading it takes some microseconds.
        batch = int(batch_sizes[0]) if hx is not None or self.per_sample else 0
        return self._run(data, batch_sizes.size(0), batch, hx, batch_sizes, order, scales,
                         return_cells)

    def _run(self, x: Tensor, steps: int, batch: int, hx: Optional[Tuple[Tensor, Tensor]],
             batch_sizes: Optional[Tensor], sorted_indices: Optional[Tensor],
             scales: Optional[Scales], return_cells: bool
             ) -> Tuple[Tensor, Tuple[Tensor, Tensor], List[Tensor]]:
        """x: [T, B, I], or [N, I] when packed."""
        entries = self.num_layers * (2 if self.bidirectional else 1)
        if torch.jit.is_scripting() or not torch.jit.is_tracing():  # a trace would keep the sizes
            check_sizes(x, self.input_size, hx, [entries, batch, self.hidden_size])
        if scales is None:
            h_scale, c_scale = self.draw_scales(steps, batch, x.device)
        else:
            h_scale, c_scale = list(scales[0]), list(scales[1])
            for given in [len(h_scale), len(c_scale)]:
                if given != 0 and given != entries:
                    raise ValueError(f"scales has a list of {given} entries; it must have "
                                     f"{entries} (num_layers * num_directions), or none")
        h0: Optional[Tensor] = None
        c0: Optional[Tensor] = None
        if hx is not None:
            h0, c0 = hx
        output, h_n, c_n, cells = torch.ops.hdetach.lstm_stack(
            x, h0, c0, self._weights(), self.bias, self.num_layers, self.dropout, self.training,
            self.bidirectional, _ones_for_none(h_scale, steps, x.device),
            _ones_for_none(c_scale, steps, x.device), batch_sizes, sorted_indices, return_cells)
        return output, (h_n, c_n), cells

    def _weights(self) -> List[Tensor]:
        if torch.jit.is_scripting():
            return self._flat_weights
        # By name: right too where parameters were swapped (replicas, functional_call, pruning).
        return [getattr(self, name) for name in self._flat_weights_names]


def _ones_for_none(scales: List[Optional[Tensor]], steps: int,
                   device: torch.device) -> List[Tensor]:
    """For the op: torch.jit.trace can record no list of optional tensors."""
    filled: List[Tensor] = []
    for scale in scales:
        if scale is None:
            scale = torch.ones([steps], dtype=torch.float32, device=device)
        filled.append(scale)
    return filled


def _packed_like(packed: PackedSequence, data: Tensor) -> PackedSequence:
    return PackedSequence(data, packed.batch_sizes, packed.sorted_indices, packed.unsorted_indices)


def _share(module: nn.RNNBase, cls: Any, **policy: Any) -> Any:
    """A `cls` with the options and the very parameters of `module`."""
    names = [name for layer in module._all_weights for name in layer]
    made = cls(module.input_size, module.hidden_size, num_layers=module.num_layers,
               bias=module.bias, batch_first=module.batch_first, dropout=module.dropout,
               bidirectional=module.bidirectional, proj_size=module.proj_size,
               device="meta", **policy)  # on meta nothing is allocated or drawn
    return share_parameters(module, made, names)
