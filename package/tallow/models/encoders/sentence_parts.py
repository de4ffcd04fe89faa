"""The modules of a sentence-transformers folder that follow the transformer: pooling, dense layers, normalization.

Letters: B texts of a batch, T positions, D width.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tallow import dtypes
from tallow.core.apply import apply
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, CheckpointError, TallowWarning, warn
from tallow.functions.like import ones_like
from tallow.io.model_folder import load_folder
from tallow.models.config import CONFIG, read_entries
from tallow.models.encoders.sentence_folder import MODULES, STATIC, modules_of
from tallow.models.torch_activations import activation_of
from tallow.nn import functional as F
from tallow.nn.linear import Identity, Linear
from tallow.nn.module import Module
from tallow.nn.normalization import LayerNorm
from tallow.ops.joining import cat

SENTENCE = "sentence_embedding"  # the pooled vector's name in sentence-transformers
MODELS = ("Transformer", STATIC)  # kinds of the first module
HALVES = (dtypes.float16, dtypes.bfloat16)
Loader = Callable[[Path], Mapping[str, Tensor]]


def _mean(x_BTD: Tensor, mask_BT1: Tensor) -> Tensor:
    return (x_BTD * mask_BT1).sum(1) / mask_BT1.sum(1).clamp(min=1e-9)


def _mean_by_root(x_BTD: Tensor, mask_BT1: Tensor) -> Tensor:
    return (x_BTD * mask_BT1).sum(1) / mask_BT1.sum(1).clamp(min=1e-9).sqrt()


def _weighted_mean(x_BTD: Tensor, mask_BT1: Tensor) -> Tensor:
    """Return a mean in which position t has weight t + 1."""
    return _mean(x_BTD, mask_BT1 * _ranks(mask_BT1))


def _max(x_BTD: Tensor, mask_BT1: Tensor) -> Tensor:
    return x_BTD.masked_fill(mask_BT1 == 0, float("-inf")).amax(1)


def _first(x_BTD: Tensor, mask_BT1: Tensor) -> Tensor:
    return _at(x_BTD, mask_BT1.argmax(1, keepdim=True))


def _last(x_BTD: Tensor, mask_BT1: Tensor) -> Tensor:
    return _at(x_BTD * mask_BT1, (mask_BT1 * _ranks(mask_BT1)).argmax(1, keepdim=True))


def _ranks(mask_BT1: Tensor) -> Tensor:
    return ones_like(mask_BT1).cumsum(1)


def _at(x_BTD: Tensor, at_B11: Tensor) -> Tensor:
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

    Args:
        modes: names of `POOLINGS`.
        include_prompt: pool the prompt together with the text.

    Shapes:  x (B, T, D), mask (B, T) -> (B, D times the number of modes)
    Dtypes:  halves are pooled in float32
    Raises:  ArgumentError for no mode or an unknown one
    """

    def __init__(self, *modes: str, include_prompt: bool = True) -> None:
        super().__init__()
        if not modes or any(mode not in POOLINGS for mode in modes):
            raise ArgumentError(f"Pooling: modes {modes}", hint=f"pass one or more of {', '.join(POOLINGS)}")
        self.modes = modes
        self.include_prompt = include_prompt

    @classmethod
    def from_json(cls, path: Path) -> Pooling:
        """Read a pooling's `config.json`.  Raises: CheckpointError"""
        entries = read_entries(path)
        modes = entries.get("pooling_mode")
        if modes is None:
            on = [name for name, value in entries.items() if name.startswith("pooling_mode_") and value]
            modes = [OLDER_POOLINGS.get(name, name) for name in (*OLDER_POOLINGS, *on) if name in on] or ["mean"]
        modes = dict.fromkeys([modes] if isinstance(modes, str) else map(str, modes))
        try:
            return cls(*modes, include_prompt=entries.get("include_prompt") is not False)
        except ArgumentError as error:
            raise CheckpointError(f"{path}: {error}") from error

    def forward(self, x_BTD: Tensor, mask_BT: Tensor, skip: int = 0) -> Tensor:
        """Return the vectors of texts with padding at the end.  Args: skip: leave out so many of the first tokens"""
        # A half counts to 256 or 2048.
        wide_BTD = x_BTD.float() if x_BTD.dtype in HALVES else x_BTD
        mask_BT1 = mask_BT.unsqueeze(-1).to(wide_BTD.dtype)
        if skip:
            mask_BT1 = mask_BT1 * (_ranks(mask_BT1) > skip)
        vectors = [POOLINGS[mode](wide_BTD, mask_BT1) for mode in self.modes]
        return (vectors[0] if len(vectors) == 1 else apply(cat, vectors, 1)).to(x_BTD.dtype)

    def extra_repr(self) -> str:
        return ", ".join(self.modes)


class Normalize(Module):
    """Scales vectors to length 1."""

    @classmethod
    def from_pretrained(cls, folder: Path, load: Loader) -> Normalize:
        """Return the module; older folders have no file for it.  Raises: CheckpointError"""
        path = folder / CONFIG
        _check_usual(path, read_entries(path) if path.exists() else {}, _NAMES)
        return cls()

    def forward(self, x_BD: Tensor) -> Tensor:
        return F.normalize(x_BD, dim=-1)


class Dense(Module):
    """activation(linear(x)), plus x or `residual` of it if there is one"""

    def __init__(self, linear: Linear, activation: Module, residual: Module | None = None) -> None:
        super().__init__()
        self.linear = linear
        self.activation_function = activation
        self.residual = residual

    @classmethod
    def from_pretrained(cls, folder: Path, load: Loader = load_folder, names: Mapping[str, str] | None = None) -> Dense:
        """Load a Dense module.

        Args:    names: the entries that say which vectors it maps; None means those of texts
        Raises:  CheckpointError for an unsupported design, or weights that do not fit
        """
        path = folder / CONFIG
        entries = read_entries(path)
        wide, out = (_size(path, entries, name) for name in ("in_features", "out_features"))
        named = entries.get("activation_function", "torch.nn.modules.activation.Tanh")
        activation = activation_of(named, f"{path}: activation_function")
        _check_usual(path, entries, _NAMES if names is None else names)
        residual = None
        if entries.get("use_residual"):
            residual = Identity() if wide == out else Linear(wide, out, bias=False, device="meta")
        linear = Linear(wide, out, bias=bool(entries.get("bias", True)), device="meta")
        dense = cls(linear, activation, residual)
        dense.load_state_dict(load(folder), assign=True, source=str(folder))
        return dense

    def forward(self, x_BD: Tensor) -> Tensor:
        y_BD = self.activation_function(self.linear(x_BD))
        return y_BD if self.residual is None else y_BD + self.residual(x_BD)


class Norm(Module):
    """LayerNorm, with the names of sentence-transformers' module."""

    def __init__(self, dimension: int) -> None:
        super().__init__()
        self.norm = LayerNorm(dimension, device="meta")

    @classmethod
    def from_pretrained(cls, folder: Path, load: Loader) -> Norm:
        """Load a LayerNorm module.  Raises: CheckpointError"""
        path = folder / CONFIG
        norm = cls(_size(path, read_entries(path), "dimension"))
        norm.load_state_dict(load(folder), assign=True, source=str(folder))
        return norm

    def forward(self, x_BD: Tensor) -> Tensor:
        return self.norm(x_BD)


HEADS: dict[str, Callable[[Path, Loader], Module]] = {
    "Dense": Dense.from_pretrained,
    "Dropout": lambda folder, load: Identity(),  # it drops in training only
    "LayerNorm": Norm.from_pretrained,
    "Normalize": Normalize.from_pretrained,
}


class Parts(NamedTuple):
    """The modules of a folder.

    Attributes:
        kind, folder: of the first module, the model.
        pooling: None for a folder with an encoder alone, and for static embeddings.
        heads: what follows, in order.
    """

    kind: str
    folder: Path
    pooling: Pooling | None
    heads: list[Module]


def read_parts(folder: Path, load: Loader) -> Parts:
    """Read the modules of a folder, with the model's place in it; without `modules.json`, the folder is the model's.

    Raises:  CheckpointError for other modules, and for an order in which they compute no vector of a text
    """
    modules = list(modules_of(folder)) or [(MODELS[0], folder)]
    unknown = [kind for kind, _ in modules if kind not in (*MODELS, "Pooling", *HEADS)]
    if unknown:
        raise CheckpointError(f"{folder}: tallow does not support modules of kind {unknown[0]!r:.80}")
    (first, place), *rest = modules
    if first not in MODELS or any(kind in MODELS for kind, _ in rest):
        raise CheckpointError(f"{folder / MODULES}: expected a model, {' or '.join(MODELS)}, as the first module alone")
    pooling: Pooling | None = None
    heads: list[Module] = []
    for kind, path in rest:
        if kind == "Pooling":
            key = read_entries(path / CONFIG).get("output_key")
            if key not in (SENTENCE, None):
                warn(
                    f"{path / CONFIG}: its vectors, {key!r:.80}, are not computed; encode returns {SENTENCE}",
                    TallowWarning,
                )
                continue
            pooling, heads = Pooling.from_json(path / CONFIG), []  # pools the positions anew
        elif pooling is not None or first == STATIC:
            heads.append(HEADS[kind](path, load))
        elif kind != "Normalize":
            raise CheckpointError(f"{folder / MODULES}: {kind} before Pooling, which gives the vector of a text")
    if pooling is None and first != STATIC and (folder / MODULES).exists():
        raise CheckpointError(f"{folder / MODULES} has no Pooling, which gives the vector of a text")
    return Parts(first, place, pooling, heads)


_NAMES = dict.fromkeys(("module_input_name", "module_output_name"), SENTENCE)


def _check_usual(path: Path, entries: Mapping[str, Any], usual: Mapping[str, Any]) -> None:
    """Raise CheckpointError for an entry with another value than the only one that is supported, or none."""
    for entry, value in usual.items():
        if entries.get(entry) not in (value, None):
            raise CheckpointError(f"{path}: {entry} is {entries[entry]!r:.80}; tallow supports only {value!r}")


def _size(path: Path, entries: Mapping[str, Any], name: str) -> int:
    size = entries.get(name)
    if type(size) is not int or size < 1:
        raise CheckpointError(f"{path}: {name}={size!r:.80}; expected a positive integer")
    return size
