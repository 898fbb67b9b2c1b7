"""Swaps the LSTMs inside a model, either way."""
from typing import Any, Callable, Dict, Optional

from torch import nn

from ._cell import LSTMCell
from ._lstm import LSTM

# What takes a module's place, or None where it stays.
_Swap = Callable[[nn.Module], Optional[nn.Module]]


def convert(model: nn.Module, **policy: Any) -> nn.Module:
    """Puts an hdetach.LSTM or LSTMCell in the place of every torch.nn.LSTM and LSTMCell of `model`.

    Changes `model` itself; the parameters are the same objects under the same names, so optimizers
    and checkpoints go on working.

    Args:
        model: any module. Where it is an LSTM itself, its successor is returned.
        **policy: the policy arguments of `hdetach.LSTM`. Cells take all but layers_policy.
    """
    for_cells = {name: value for name, value in policy.items() if name != "layers_policy"}

    def swap(module: nn.Module) -> Optional[nn.Module]:
        if not isinstance(module, (nn.LSTM, nn.LSTMCell)) or isinstance(module, LSTMCell):
            return None
        if type(module) is nn.LSTM:
            return LSTM.from_torch(module, **policy)
        if type(module) is nn.LSTMCell:
            return LSTMCell.from_torch(module, **for_cells)
        # What a subclass adds (a parametrization, its own forward) would be lost.
        raise TypeError(f"convert: {type(module).__name__} is a subclass of torch's LSTM; where "
                        "nothing of it is lost, replace it by hdetach.LSTM.from_torch(module)")

    return _swapped(model, swap, {})


def restore(model: nn.Module) -> nn.Module:
    """The inverse of `convert`: torch's own modules in the place of ours, in `model` itself."""

    def swap(module: nn.Module) -> Optional[nn.Module]:
        return module.to_torch() if isinstance(module, (LSTM, LSTMCell)) else None

    return _swapped(model, swap, {})


def _swapped(module: nn.Module, swap: _Swap, done: Dict[nn.Module, nn.Module]) -> nn.Module:
    # A module that stands in two places stays one module.
    if module not in done:
        made = swap(module)
        done[module] = module if made is None else made
        if made is None:
            for name, child in list(module._modules.items()):
                if child is not None:
                    module._modules[name] = _swapped(child, swap, done)
    return done[module]
