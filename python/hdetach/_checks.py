"""What forward() is given, checked in the words that users of torch.nn.LSTM know."""
from typing import Any, List, Optional, Tuple

from torch import Tensor
from torch.nn.utils.rnn import PackedSequence


def check_sizes(input: Tensor, input_size: int, hx: Optional[Tuple[Tensor, Tensor]],
                expected: List[int]) -> None:
    """Raises RuntimeError, in torch.nn.LSTM's words, where the sizes do not fit each other."""
    if input.size(-1) != input_size:
        raise RuntimeError("input.size(-1) must be equal to input_size. Expected "
                           f"{input_size}, got {input.size(-1)}")
    if hx is not None:
        for index, state in enumerate(hx):
            if list(state.size()) != expected:
                raise RuntimeError(f"Expected hidden[{index}] size {expected}, got "
                                   f"{list(state.size())}")


def check_types(input: Any, hx: Any, scales: Any) -> None:
    if not isinstance(input, (Tensor, PackedSequence)):
        raise TypeError("LSTM: input must be a Tensor or a PackedSequence, not "
                        f"{type(input).__name__}")
    if hx is not None and (not isinstance(hx, (tuple, list)) or len(hx) != 2):
        length = f" of {len(hx)}" if isinstance(hx, (tuple, list)) else ""
        raise TypeError("LSTM: hx must be a pair (h_0, c_0) or None, not "
                        f"{type(hx).__name__}{length}")
    if scales is not None and (not isinstance(scales, (tuple, list)) or len(scales) != 2
                               or not all(isinstance(part, (tuple, list)) for part in scales)):
        raise TypeError("LSTM: scales must be a pair of lists (h_scale, c_scale), such as "
                        "([h_scale], []) for one layer")
