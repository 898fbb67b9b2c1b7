"""An LSTM whose gradient can be steered at every time step (h-detach), for PyTorch.

    import hdetach
    lstm = hdetach.LSTM(10, 128, num_layers=2, detach=0.25)  # otherwise a torch.nn.LSTM

`LSTM` and `LSTMCell` are modules; `lstm`, `lstm_cell` and `sample_scales` are the ops beneath them;
`convert` swaps the LSTMs of a model, `restore` swaps them back, `export_onnx` writes ONNX.
"""
from ._library import load as _load

__version__ = "0.1.0"
loaded_from = _load()  # the path of the compiled library

from ._cell import LSTMCell  # noqa: E402  (the modules need the ops that load() brings)
from ._convert import convert, restore  # noqa: E402
from ._functional import lstm, lstm_cell, sample_scales  # noqa: E402
from ._lstm import LSTM  # noqa: E402
from ._onnx import export_onnx  # noqa: E402
from ._policy import CellScales, Scales  # noqa: E402

__all__ = ["LSTM", "LSTMCell", "lstm", "lstm_cell", "sample_scales", "convert", "restore",
           "export_onnx", "Scales", "CellScales", "loaded_from", "__version__"]
