"""What LSTM and LSTMCell share: the policy's attributes, its repr, and a generator that pickles."""
from typing import Any, Dict, List, Optional

import torch
from torch import Tensor, nn

from ._policy import check_choice, check_detach, draw_keep, draw_keep_from


def share_parameters(module: nn.Module, made: Any, names: List[str]) -> Any:
    """Gives `made` the very parameters of `module`, which are `names`, and its mode."""
    if [name for name, _ in module.named_parameters()] != names:
        raise ValueError(f"the parameters of this {type(module).__name__} are not plain ones "
                         "(parametrized or pruned?); remove that first")
    for name in names:
        setattr(made, name, getattr(module, name))
    return made.train(module.training)


class Steered:
    """A mixin for modules with a gradient policy. Its attributes are read at every forward pass, so
    `module.detach` may be annealed."""

    detach: float
    path: str
    detach_mode: str  # the argument `mode`; torch's RNN modules have a `mode` of their own
    per_sample: bool
    # and generator: Optional[torch.Generator], which TorchScript would not take as an annotation

    def _set_policy(self, detach: float, path: str, mode: str, per_sample: bool,
                    generator: Optional[torch.Generator]) -> None:
        if generator is not None and not isinstance(generator, torch.Generator):
            raise TypeError(f"generator is a {type(generator).__name__}; it must be a "
                            "torch.Generator or None")
        self.detach = check_detach(float(detach))
        self.path = check_choice("path", path)
        self.detach_mode = check_choice("mode", mode)
        self.per_sample = bool(per_sample)
        self.generator = generator

    def _draw_keep(self, shape: List[int], device: torch.device) -> Tensor:
        """0 where a step is blocked, else 1; from this module's generator."""
        if torch.jit.is_scripting():
            return draw_keep(shape, self.detach, device)
        elif self.generator is None:
            return draw_keep(shape, self.detach, device)
        else:
            return draw_keep_from(self.generator, shape, self.detach, device)

    def _policy_repr(self) -> str:
        """The policy as extra_repr() shows it; empty for a policy that steers nothing."""
        if self.detach == 0.0:
            return ""
        text = f", detach={self.detach}"
        if self.path != "hidden":
            text += f", path={self.path}"
        if self.detach_mode != "detach":
            text += f", mode={self.detach_mode}"
        return text + (", per_sample=True" if self.per_sample else "")

    def __prepare_scriptable__(self) -> "Steered":
        # TorchScript has no generators: draws from another one than asked for would go unnoticed.
        if self.generator is not None:
            raise ValueError(f"{type(self).__name__} has a generator, and TorchScript cannot draw "
                             "from it; set module.generator = None first, then the scripted module "
                             "draws from torch's default generator")
        return self

    # A torch.Generator does not pickle in every torch: its device and state do. A copy goes on from
    # the same state with a generator of its own.
    def __getstate__(self) -> Dict[str, Any]:
        parent = getattr(super(), "__getstate__", None)
        state = dict(parent() if parent is not None else self.__dict__)
        if self.generator is not None:
            state["generator"] = (str(self.generator.device), self.generator.get_state())
        return state

    def __setstate__(self, state: Dict[str, Any]) -> None:
        state = dict(state)
        if state.get("generator") is not None:
            device, drawn = state["generator"]
            state["generator"] = torch.Generator(device)
            state["generator"].set_state(drawn)
        super().__setstate__(state)  # type: ignore[misc]  # the module's
