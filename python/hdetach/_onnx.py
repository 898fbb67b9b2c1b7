"""Writes a model as ONNX, its LSTMs as the standard operator."""
import copy
import inspect
from typing import Any

import torch
from torch import nn

from ._convert import restore


class _WithoutScales(nn.LSTM):
    """An nn.LSTM for models that pass scales: they never change what is computed."""

    def forward(self, input: Any, hx: Any = None, scales: Any = None,  # type: ignore[override]
                return_cells: bool = False) -> Any:
        if return_cells:
            raise RuntimeError("export_onnx: ONNX's LSTM operator has no output for return_cells")
        return super().forward(input, hx)


class _CellWithoutScales(nn.LSTMCell):
    def forward(self, input: Any, hx: Any = None,  # type: ignore[override]
                scales: Any = None) -> Any:
        return super().forward(input, hx)


def export_onnx(model: nn.Module, args: Any, f: Any, **kwargs: Any) -> None:
    """`torch.onnx.export` for a model with hdetach modules.

    The model is copied, and the copy gets torch's own LSTMs, which the exporter writes as ONNX's
    LSTM operator. The policy is left out: it never changes what a model computes.

    Args:
        model: an LSTM, or a model that holds some; left as it is.
        args: an example input, or a tuple of them.
        f: the file's path, or a file object.
        **kwargs: passed on. ``dynamo`` is False unless given: that exporter knows the operator.
    """
    plain = restore(copy.deepcopy(model))
    for module in plain.modules():
        if type(module) is nn.LSTM:
            module.__class__ = _WithoutScales
        elif type(module) is nn.LSTMCell:
            module.__class__ = _CellWithoutScales
    if "dynamo" in inspect.signature(torch.onnx.export).parameters:
        kwargs.setdefault("dynamo", False)
    torch.onnx.export(plain, args, f, **kwargs)
