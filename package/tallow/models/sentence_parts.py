"""The modules of a sentence-transformers folder that follow the transformer: pooling, dense layers, normalization.

Letters: B texts of a batch, T positions, D width.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from tallow.core.apply import apply
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, CheckpointError
from tallow.io.model_folder import load_folder
from tallow.models.config import CONFIG, read_entries
from tallow.nn import functional as F
from tallow.nn.activation import ReLU, Tanh
from tallow.nn.linear import Identity, Linear
from tallow.nn.module import Module
from tallow.ops.joining import cat

SENTENCE = "sentence_embedding"  # the pooled vector's name in sentence-transformers
ACTIVATIONS: dict[str, type[Module]] = {"Identity": Identity, "ReLU": ReLU, "Tanh": Tanh}
Loader = Callable[[Path], Mapping[str, Tensor]]


def _mean(x_BTD: Tensor, mask_BT1: Tensor) -> Tensor:
    return (x_BTD * mask_BT1).sum(1) / mask_BT1.sum(1).clamp(min=1e-9)


def _mean_by_root(x_BTD: Tensor, mask_BT1: Tensor) -> Tensor:
    return (x_BTD * mask_BT1).sum(1) / mask_BT1.sum(1).clamp(min=1e-9).sqrt()


def _weighted_mean(x_BTD: Tensor, mask_BT1: Tensor) -> Tensor:
    """Return a mean in which position t has weight t + 1."""
    return _mean(x_BTD, mask_BT1 * mask_BT1.cumsum(1))


def _max(x_BTD: Tensor, mask_BT1: Tensor) -> Tensor:
    return x_BTD.masked_fill(mask_BT1 == 0, float("-inf")).amax(1)


def _first(x_BTD: Tensor, mask_BT1: Tensor) -> Tensor:
    return x_BTD[:, 0]


def _last(x_BTD: Tensor, mask_BT1: Tensor) -> Tensor:
    at_B11 = mask_BT1.sum(1, keepdim=True).long() - 1
    return x_BTD.gather(1, at_B11.expand(-1, 1, x_BTD.shape[2])).squeeze(1)


# By the names of newer configs, in the order in which several vectors are concatenated.
POOLINGS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "cls": _first,
    "max": _max,
    "mean": _mean,
    "mean_sqrt_len_tokens": _mean_by_root,
    "weightedmean": _weighted_mean,
    "lasttoken": _last,
}
OLDER_POOLINGS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}


class Pooling(Module):
    """Pools the positions of each text to one vector; concatenates the vectors of several modes.

    Args:    modes: names of `POOLINGS`
    Shapes:  x (B, T, D), mask (B, T) -> (B, D times the number of modes)
    Raises:  ArgumentError for no mode or an unknown one
    """

    def __init__(self, *modes: str) -> None:
        super().__init__()
        if not modes or any(mode not in POOLINGS for mode in modes):
            raise ArgumentError(f"Pooling: modes {modes}", hint=f"pass one or more of {', '.join(POOLINGS)}")
        self.modes = modes

    @classmethod
    def from_json(cls, path: Path) -> Pooling:
        """Read a pooling's `config.json`.  Raises: CheckpointError"""
        entries = read_entries(path)
        if entries.get("include_prompt") is False:
            raise CheckpointError(f"{path}: include_prompt is False; tallow pools the prompt together with the text")
        modes = entries.get("pooling_mode")
        if modes is None:
            on = [name for name, value in entries.items() if name.startswith("pooling_mode_") and value]
            modes = [OLDER_POOLINGS.get(name, name) for name in (*OLDER_POOLINGS, *on) if name in on] or ["mean"]
        modes = dict.fromkeys([modes] if isinstance(modes, str) else map(str, modes))
        try:
            return cls(*modes)
        except ArgumentError as error:
            raise CheckpointError(f"{path}: {error}") from error

    def forward(self, x_BTD: Tensor, mask_BT: Tensor) -> Tensor:
        mask_BT1 = mask_BT.unsqueeze(-1).to(x_BTD.dtype)
        vectors = [POOLINGS[mode](x_BTD, mask_BT1) for mode in self.modes]
        return vectors[0] if len(vectors) == 1 else apply(cat, vectors, 1)

    def extra_repr(self) -> str:
        return ", ".join(self.modes)


class Normalize(Module):
    """Scales vectors to length 1."""

    def forward(self, x_BD: Tensor) -> Tensor:
        return F.normalize(x_BD, dim=-1)


class Dense(Module):
    """activation(linear(x))"""

    def __init__(self, linear: Linear, activation: Module) -> None:
        super().__init__()
        self.linear = linear
        self.activation_function = activation

    @classmethod
    def from_pretrained(cls, folder: Path, load: Loader = load_folder) -> Dense:
        """Load a Dense module.  Raises: CheckpointError for an unsupported design, or weights that do not fit"""
        path = folder / CONFIG
        entries = read_entries(path)
        wide, out = entries.get("in_features"), entries.get("out_features")
        if type(wide) is not int or type(out) is not int or min(wide, out) < 1:
            raise CheckpointError(f"{path}: in_features={wide!r}, out_features={out!r}; expected positive integers")
        activation = str(entries.get("activation_function", "torch.nn.modules.activation.Tanh"))
        name = activation.rpartition(".")[2]
        if not activation.startswith("torch.nn.modules.") or name not in ACTIVATIONS:
            raise CheckpointError(f"{path}: activation {activation!r}; tallow supports {', '.join(ACTIVATIONS)}")
        usual = {"use_residual": False, **dict.fromkeys(("module_input_name", "module_output_name"), SENTENCE)}
        for entry, value in usual.items():
            if entries.get(entry) not in (value, None):
                raise CheckpointError(f"{path}: {entry} is {entries[entry]!r}; tallow supports only {value!r}")
        dense = cls(Linear(wide, out, bias=bool(entries.get("bias", True)), device="meta"), ACTIVATIONS[name]())
        dense.load_state_dict(load(folder), assign=True, source=str(folder))
        return dense

    def forward(self, x_BD: Tensor) -> Tensor:
        return self.activation_function(self.linear(x_BD))
