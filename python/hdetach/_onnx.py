"""Writes a model as ONNX, its LSTMs as the standard operator."""
import copy
import inspect
from typing import Any

import torch
from torch import nn

from ._convert import restore


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
    if "dynamo" in inspect.signature(torch.onnx.export).parameters:
        kwargs.setdefault("dynamo", False)
    torch.onnx.export(plain, args, f, **kwargs)
