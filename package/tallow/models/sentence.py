"""Sentence embeddings: an encoder or a decoder, how its positions become one vector, and what comes after.

Loads folders of sentence-transformers: `modules.json` names the parts, each in a folder of its own. A folder without it
is an encoder whose positions are averaged.

Letters: B texts of a batch, N texts, T positions, D width.

Source:  Reimers & Gurevych 2019, arXiv:1908.10084; files as sentence-transformers writes them
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tallow import devices
from tallow.apply import apply
from tallow.autograd.modes import no_grad
from tallow.errors import ArgumentError, CheckpointError
from tallow.hub import local_folder
from tallow.io.model_folder import load_folder
from tallow.models.bert import BertModel
from tallow.models.config import CONFIG, read_entries
from tallow.models.distilbert import DistilBertModel
from tallow.models.sentence_folder import TEXT_CONFIG, encoder_class, modules_of, transformer_class
from tallow.nn import functional as F
from tallow.nn.activation import ReLU, Tanh
from tallow.nn.linear import Identity, Linear
from tallow.nn.module import Module
from tallow.ops.joining import cat
from tallow.tensor import Tensor, wrap
from tallow.text.tokenizer import Batch, Encoded, Tokenizer

SENTENCE = "sentence_embedding"  # what sentence-transformers calls the one vector of a text
ACTIVATIONS: dict[str, type[Module]] = {"Identity": Identity, "ReLU": ReLU, "Tanh": Tanh}
Progress = Callable[[int, int], None]
Loader = Callable[[Path], Mapping[str, Tensor]]


def _mean(x_BTD: Tensor, mask_BT1: Tensor) -> Tensor:
    return (x_BTD * mask_BT1).sum(1) / mask_BT1.sum(1).clamp(min=1e-9)


def _mean_by_root(x_BTD: Tensor, mask_BT1: Tensor) -> Tensor:
    return (x_BTD * mask_BT1).sum(1) / mask_BT1.sum(1).clamp(min=1e-9).sqrt()


def _weighted_mean(x_BTD: Tensor, mask_BT1: Tensor) -> Tensor:
    """Later positions count more."""
    return _mean(x_BTD, mask_BT1 * mask_BT1.cumsum(1))


def _max(x_BTD: Tensor, mask_BT1: Tensor) -> Tensor:
    return x_BTD.masked_fill(mask_BT1 == 0, float("-inf")).amax(1)


def _first(x_BTD: Tensor, mask_BT1: Tensor) -> Tensor:
    return x_BTD[:, 0]


def _last(x_BTD: Tensor, mask_BT1: Tensor) -> Tensor:
    at_B11 = mask_BT1.sum(1, keepdim=True).long() - 1
    return x_BTD.gather(1, at_B11.expand(-1, 1, x_BTD.shape[2])).squeeze(1)


# By the names of newer configs, in the order in which the vectors of several are joined.
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
    """One vector for each text, from its positions; the vectors of several modes are joined.

    Args:    modes: names of `POOLINGS`
    Shapes:  x (B, T, D), mask (B, T) -> (B, D times the number of modes)
    Raises:  ArgumentError for no mode, or one that is not known
    """

    def __init__(self, *modes: str) -> None:
        super().__init__()
        if not modes or any(mode not in POOLINGS for mode in modes):
            raise ArgumentError(f"Pooling: modes {modes}", mend=f"one or more of {', '.join(POOLINGS)}")
        self.modes = modes

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
    """Vectors of length 1."""

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
        """Raises:  CheckpointError for another design, or weights that do not fit"""
        path = folder / CONFIG
        entries = read_entries(path)
        wide, out = entries.get("in_features"), entries.get("out_features")
        if type(wide) is not int or type(out) is not int or min(wide, out) < 1:
            raise CheckpointError(f"{path}: in_features={wide!r}, out_features={out!r}; expected positive integers")
        activation = str(entries.get("activation_function", "torch.nn.modules.activation.Tanh"))
        name = activation.rpartition(".")[2]
        if not activation.startswith("torch.nn.modules.") or name not in ACTIVATIONS:
            raise CheckpointError(f"{path}: activation {activation!r}; tallow has {', '.join(ACTIVATIONS)}")
        usual = {"use_residual": False, **dict.fromkeys(("module_input_name", "module_output_name"), SENTENCE)}
        for entry, value in usual.items():
            if entries.get(entry) not in (value, None):
                raise CheckpointError(f"{path}: {entry} is {entries[entry]!r}; tallow computes {value!r} only")
        dense = cls(Linear(wide, out, bias=bool(entries.get("bias", True)), device="meta"), ACTIVATIONS[name]())
        dense.load_state_dict(load(folder), assign=True, source=str(folder))
        return dense

    def forward(self, x_BD: Tensor) -> Tensor:
        return self.activation_function(self.linear(x_BD))


class SentenceEncoder:
    """Vectors of sentences: similar ones for what means the same.

    Args:
        tokenizer, model: of an encoder, such as a BERT, or a decoder without a head, such as a Qwen3Model.
        pooling: makes one vector of a text's positions.
        heads: what comes after, in this order.
        max_length: tokens a text may have; what is beyond is left out. None means the tokenizer's.
        lowercase: before anything else.

    Example:
        encoder = SentenceEncoder.from_pretrained("sentence-transformers/all-MiniLM-L6-v2")
        vectors = encoder.encode(["A cat sleeps.", "A kitten naps.", "The bank is closed."])
        vectors @ vectors.T
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        model: Module,
        pooling: Pooling | None = None,
        heads: Sequence[Module] = (),
        *,
        max_length: int | None = None,
        lowercase: bool = False,
    ) -> None:
        self.tokenizer = tokenizer
        self.model = model
        self.pooling = pooling or Pooling("mean")
        self.heads = tuple(heads)
        self.max_length = max_length
        self.lowercase = lowercase
        # Poolings leave padding out.
        self._options = {"skip_padding": True} if isinstance(model, BertModel | DistilBertModel) else {}

    @classmethod
    def from_pretrained(
        cls,
        name: str | Path,
        dtype: Any = None,
        device: Any = None,
        *,
        revision: str | None = None,
        token: str | None = None,
    ) -> SentenceEncoder:
        """Load a folder of sentence-transformers, or of an encoder, whose positions are then averaged.

        Args:
            name: a folder, or `owner/repository` of the Hub.
            dtype: of the model; as in the file if None.
            revision, token: of the Hub's repository, as `tallow.hub.local_folder` takes them.

        Raises:  CheckpointError, TokenizerError, MissingPackageError, HubError
        """
        return cls.assemble(local_folder(name, revision=revision, token=token), load_folder, dtype, device)

    @classmethod
    def assemble(cls, folder: Path, load: Loader, dtype: Any = None, device: Any = None) -> SentenceEncoder:
        """What the JSON files of a folder describe, made of weights that may be elsewhere.

        Args:    load: gives the tensors of a part by its folder, which is `folder` or one in it
        Raises:  CheckpointError, TokenizerError, MissingPackageError
        """
        transformer, find_class, pooling = folder, encoder_class, None
        heads: list[Module] = []
        for part, path in modules_of(folder):
            if part == "Transformer":
                transformer, find_class = path, transformer_class
            elif part == "Pooling":
                pooling = Pooling.from_json(path / CONFIG)
            elif part == "Dense":
                heads.append(Dense.from_pretrained(path, load).to(devices.chosen(device), dtype=dtype).eval())
            elif part == "Normalize":
                heads.append(Normalize())
            else:
                raise CheckpointError(f"{folder}: a module of kind {part!r}, which tallow does not have")
        kind = find_class(transformer)
        config = kind.config_class.from_json(transformer / CONFIG)
        tokenizer = Tokenizer.from_pretrained(transformer)
        texts = read_entries(transformer / TEXT_CONFIG) if (transformer / TEXT_CONFIG).exists() else {}
        modalities = texts.get("modality_config")
        if isinstance(modalities, dict) and "message" in modalities:
            raise CheckpointError(
                f"{transformer / TEXT_CONFIG}: modality_config has 'message', which reads texts as a conversation; "
                "tallow reads them as they are"
            )
        unused = {"add_pooling_layer": False} if issubclass(kind, BertModel) else {}
        model = kind.assemble(config, load(transformer), dtype, device, str(transformer), **unused)
        return cls(
            tokenizer,
            model,
            pooling,
            heads,
            max_length=_max_length(texts.get("max_seq_length"), tokenizer, model.context_length),
            lowercase=texts.get("do_lower_case") is True,
        )

    def encode(
        self,
        texts: str | Sequence[str],
        *,
        batch_size: int = 32,
        normalize: bool = False,
        progress: Progress | None = None,
    ) -> npt.NDArray[np.float32]:
        """The vectors of texts.

        Args:
            batch_size: texts at once, of about the same length.
            normalize: to length 1, also where the model does not.
            progress: called after each batch with the texts done, and all.

        Shapes:  (N, D) for N texts, (D,) for a single string
        Raises:  ArgumentError for a batch_size below 1; TokenizerError for a text that cannot be encoded
        """
        if batch_size < 1:
            raise ArgumentError(f"encode: batch_size={batch_size}", mend="pass 1 or more")
        if isinstance(texts, str):
            return self.encode([texts], normalize=normalize)[0]
        prepared = [text.lower() for text in texts] if self.lowercase else texts
        rows = self.tokenizer.encode_each(prepared, max_length=self.max_length)
        vectors: npt.NDArray[np.float32] | None = None
        done = 0
        for members in _buckets(rows, batch_size):
            found = self.embed(self.tokenizer.pad([rows[i] for i in members]), normalize=normalize)
            if vectors is None:
                vectors = np.empty((len(rows), found.shape[1]), np.float32)
            vectors[members] = found
            done += len(members)
            if progress is not None:
                progress(done, len(rows))
        return np.empty((0, 0), np.float32) if vectors is None else vectors

    def embed(self, batch: Batch, *, normalize: bool = False) -> npt.NDArray[np.float32]:
        """As `encode`, the vectors of texts that are tokens already, all at once: (B, D)."""
        device = next(self.model.parameters()).device
        tokens_BT = wrap(devices.move(batch.input_ids, device))
        mask_BT = wrap(devices.move(batch.attention_mask, device))
        with no_grad():
            if batch.attention_mask.all():  # there is nothing to mask
                hidden = self.model(tokens_BT)
            else:
                hidden = self.model(tokens_BT, mask_BT, **self._options)
            x_BTD = hidden if isinstance(hidden, Tensor) else hidden.last_hidden_state
            x_BD = self.pooling(x_BTD, mask_BT)
            for head in self.heads:
                x_BD = head(x_BD)
            x_BD = x_BD.float()
            return (F.normalize(x_BD, dim=-1) if normalize else x_BD).cpu().numpy()


def _max_length(asked: Any, tokenizer: Tokenizer, positions: int) -> int:
    """What a folder asks for, else what its tokenizer does, but no more than the model has positions for."""
    limit = asked if type(asked) is int and asked > 2 else tokenizer.model_max_length
    return positions if limit is None else min(limit, positions)


def _buckets(rows: Sequence[Encoded], batch_size: int) -> Iterator[list[int]]:
    """Places of rows, the longest first, so that a batch has little padding and the first needs the most memory."""
    order = sorted(range(len(rows)), key=lambda i: -len(rows[i].ids))
    for start in range(0, len(order), batch_size):
        yield order[start : start + batch_size]
