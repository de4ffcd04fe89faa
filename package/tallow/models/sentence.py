"""Sentence embeddings: an encoder or decoder, a pooling of its positions to one vector, and further modules.

Loads sentence-transformers folders: `modules.json` lists the modules, each in a subfolder. A folder without that file
is an encoder, with mean pooling. A table of static embeddings stands in place of an encoder and its pooling.

Letters: B texts of a batch, N texts, T positions, D width.

Source:  Reimers & Gurevych 2019, arXiv:1908.10084; files as sentence-transformers writes them
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tallow import devices, dtypes
from tallow.autograd.modes import no_grad
from tallow.core.apply import apply
from tallow.core.tensor import Tensor, wrap
from tallow.errors import ArgumentError, CheckpointError, NumericError
from tallow.hub import local_model
from tallow.io.gguf import GGUF
from tallow.io.model_folder import load_folder
from tallow.io.source import Source
from tallow.models import gguf_models
from tallow.models.bert import BertModel
from tallow.models.config import CONFIG, read_entries
from tallow.models.decoder import DecoderHead, DecoderModel
from tallow.models.distilbert import DistilBertModel
from tallow.models.gguf_names import POOLINGS as GGUF_POOLINGS
from tallow.models.quantize import block_config
from tallow.models.sentence_folder import STATIC, TEXT_CONFIG, encoder_class, modules_of, transformer_class
from tallow.models.static_embedding import StaticEmbedding
from tallow.nn import functional as F
from tallow.nn.activation import ReLU, Tanh
from tallow.nn.linear import Identity, Linear
from tallow.nn.module import Module
from tallow.ops.joining import cat
from tallow.text.tokenizer import Batch, Tokenizer
from tallow.text.tokenizer_engines import Encoded

SENTENCE = "sentence_embedding"  # the pooled vector's name in sentence-transformers
ACTIVATIONS: dict[str, type[Module]] = {"Identity": Identity, "ReLU": ReLU, "Tanh": Tanh}
Progress = Callable[[int, int], None]
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


class SentenceEncoder:
    """Maps texts with similar meaning to nearby vectors.

    Args:
        tokenizer, model: an encoder, such as a BERT; a decoder without a head, such as a Qwen3Model; or a
            StaticEmbedding, which gets no special tokens.
        pooling: pools the positions of a text to one vector; None means the mean.
        heads: modules to apply after pooling, in order.
        max_length: the most tokens of a text; longer texts are truncated. None means the tokenizer's limit.
        lowercase: convert texts to lower case first.

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
        self._marks = not isinstance(model, StaticEmbedding)  # special tokens, which only an encoder makes use of
        # Poolings ignore padding.
        self._options = {"skip_padding": True} if isinstance(model, BertModel | DistilBertModel) else {}

    @classmethod
    def from_pretrained(
        cls,
        name: str | Path,
        dtype: Any = None,
        device: Any = None,
        *,
        quant: str | None = None,
        revision: str | None = None,
        token: str | None = None,
    ) -> SentenceEncoder:
        """Load a sentence-transformers folder; or an encoder's folder, with mean pooling.

        Args:
            name: a folder, or `owner/repository` of the Hub.
            dtype: of the model; None means as in the file, or with `quant` float32.
            quant: quantise the matrices of the transformer, as `PretrainedModel.quantize`; None leaves them in floats.
            revision, token: of the Hub repository, as in `tallow.hub.local_folder`.

        Raises:  CheckpointError, TokenizerError, MissingPackageError, HubError; as `PretrainedModel.quantize`
        """
        if quant is not None:
            block_config(quant, device)  # an error here comes before a download
        path = local_model(name, revision=revision, token=token)
        if path.is_file():
            encoder = cls.from_gguf(path, dtype, device)
            if quant is not None:
                encoder.model.quantize(quant, dtype)
            return encoder
        return cls.assemble(path, load_folder, dtype, device, quant)

    @classmethod
    def from_gguf(cls, source: Source, dtype: Any = None, device: Any = None) -> SentenceEncoder:
        """Load the encoder, or the decoder for embeddings, of a GGUF file. Files do not say whether vectors are
        normalized; `encode` has an option.

        Args:  dtype: as in `AutoModel`

        Raises:  CheckpointError, TokenizerError, MissingPackageError
        """
        model = gguf_models.load(source, dtype, device)
        pooling = gguf_pooling(GGUF(source))
        tokenizer = Tokenizer.from_gguf(source)
        model = model.base_model if isinstance(model, DecoderHead) else model
        if not isinstance(model, BertModel | DistilBertModel | DecoderModel):
            raise CheckpointError(
                f"{type(model).__name__} does not compute embeddings of texts", hint="load it with AutoModel"
            )
        return cls(tokenizer, model, Pooling(pooling), max_length=_max_length(None, tokenizer, model.context_length))

    @classmethod
    def assemble(
        cls, folder: Path, load: Loader, dtype: Any = None, device: Any = None, quant: str | None = None
    ) -> SentenceEncoder:
        """Build the encoder that the JSON files of a folder describe, with weights that may be stored elsewhere.

        Args:
            load: returns the tensors of a module from its folder, which is `folder` or a subfolder.
            dtype, quant: as in `from_pretrained`.

        Raises:  CheckpointError, TokenizerError, MissingPackageError; as `PretrainedModel.quantize`
        """
        transformer, find_class, pooling, static = folder, encoder_class, None, None
        head_dtype = dtypes.float32 if dtype is None and quant is not None else dtype
        heads: list[Module] = []
        for part, path in modules_of(folder):
            if part == "Transformer":
                transformer, find_class = path, transformer_class
            elif part == STATIC:
                static = path
            elif part == "Pooling":
                pooling = Pooling.from_json(path / CONFIG)
            elif part == "Dense":
                heads.append(Dense.from_pretrained(path, load).to(devices.chosen(device), dtype=head_dtype).eval())
            elif part == "Normalize":
                heads.append(Normalize())
            else:
                raise CheckpointError(f"{folder}: tallow does not support modules of kind {part!r}")
        if static is not None:
            table = StaticEmbedding.assemble(load(static), dtype, device, str(static))
            if quant is not None:
                table.quantize(quant)
            return cls(Tokenizer.from_pretrained(static), table, pooling, heads)
        kind = find_class(transformer)
        config = kind.config_class.from_json(transformer / CONFIG)
        tokenizer = Tokenizer.from_pretrained(transformer)
        texts = read_entries(transformer / TEXT_CONFIG) if (transformer / TEXT_CONFIG).exists() else {}
        modalities = texts.get("modality_config")
        if isinstance(modalities, dict) and "message" in modalities:
            raise CheckpointError(
                f"{transformer / TEXT_CONFIG}: modality_config has 'message', which formats texts as a conversation; "
                "tallow does not support that"
            )
        unused = {"add_pooling_layer": False} if issubclass(kind, BertModel) else {}
        model = kind.assemble(config, load(transformer), dtype, device, str(transformer), **unused)
        if quant is not None:
            model.quantize(quant, dtype)
        return cls(
            tokenizer,
            model,
            pooling,
            heads,
            max_length=_max_length(texts.get("max_seq_length"), tokenizer, model.context_length),
            lowercase=texts.get("do_lower_case") is True,
        )

    def count_tokens(self, text: str) -> int:
        """Return the number of tokens of a text before it is truncated.  Raises: TokenizerError"""
        return len(self.tokenizer.encode(text.lower() if self.lowercase else text, add_special_tokens=self._marks))

    def explain(self) -> None:
        """Print for each layer of the model whether it runs fused, and if not, why; see `PretrainedModel.explain`."""
        self.model.explain()

    def encode(
        self,
        texts: str | Sequence[str],
        *,
        batch_size: int = 32,
        normalize: bool = False,
        progress: Progress | None = None,
    ) -> npt.NDArray[np.float32]:
        """Return the vectors of texts.

        Args:
            batch_size: how many texts, of about the same length, to compute at once.
            normalize: scale vectors to length 1, even if the model does not.
            progress: called after each batch with the number of texts done and the number of all texts.

        Shapes:  (N, D) for N texts, (D,) for a single string
        Raises:  ArgumentError for a batch_size below 1; TokenizerError for a text that cannot be encoded; NumericError
                 when a vector holds NaN or infinities
        """
        if batch_size < 1:
            raise ArgumentError(f"encode: batch_size={batch_size}", hint="pass 1 or more")
        if isinstance(texts, str):
            return self.encode([texts], normalize=normalize)[0]
        rows = self.tokenize(texts)
        vectors: npt.NDArray[np.float32] | None = None
        done = 0
        for members in _buckets(rows, batch_size):
            embedded = self.embed(self.tokenizer.pad([rows[i] for i in members]), normalize=normalize)
            if vectors is None:
                vectors = np.empty((len(rows), embedded.shape[1]), np.float32)
            if not np.isfinite(embedded).all():
                raise NumericError(
                    "a vector holds NaN or infinities",
                    hint="check the weights for NaN: tallow inspect --check FILE; if they are float16, try float32, "
                    "which does not overflow",
                )
            vectors[members] = embedded
            done += len(members)
            if progress is not None:
                progress(done, len(rows))
        return np.empty((0, 0), np.float32) if vectors is None else vectors

    def tokenize(self, texts: Sequence[str]) -> list[Encoded]:
        """Return the tokens of texts, at most `max_length` of each.  Raises: TokenizerError as `encode`"""
        prepared = [text.lower() for text in texts] if self.lowercase else texts
        return self.tokenizer.encode_each(prepared, max_length=self.max_length, add_special_tokens=self._marks)

    def embed(self, batch: Batch, *, normalize: bool = False) -> npt.NDArray[np.float32]:
        """Return the vectors (B, D) of one batch of tokenized texts; as `encode`."""
        device = next(self.model.parameters()).device
        tokens_BT = wrap(devices.move(batch.input_ids, device))
        mask_BT = wrap(devices.move(batch.attention_mask, device))
        with no_grad():
            if batch.attention_mask.all():  # no padding: no mask
                hidden = self.model(tokens_BT)
            else:
                hidden = self.model(tokens_BT, mask_BT, **self._options)
            x_BTD = hidden if isinstance(hidden, Tensor) else hidden.last_hidden_state
            x_BD = self.pooling(x_BTD, mask_BT)
            for head in self.heads:
                x_BD = head(x_BD)
            x_BD = x_BD.float()
            return (F.normalize(x_BD, dim=-1) if normalize else x_BD).cpu().numpy()


def gguf_pooling(file: GGUF) -> str:
    """Return the pooling of a GGUF file: by default the mean for an encoder.

    Raises:  CheckpointError for a file without a pooling, or with an unsupported one
    """
    key = f"{file.metadata.get('general.architecture')}.pooling_type"
    kind = file.metadata.get(key, None if key != "bert.pooling_type" else 1)
    if type(kind) is not int or kind not in GGUF_POOLINGS:
        raise CheckpointError(
            f"{file.name}: {key} is {kind!r:.80}; tallow supports {', '.join(map(str, GGUF_POOLINGS))}",
            hint="it may be a model for other tasks; load it with AutoModel",
        )
    return GGUF_POOLINGS[kind]


def _max_length(requested: Any, tokenizer: Tokenizer, positions: int) -> int:
    """Return the limit that a folder sets, or else its tokenizer's, but at most the positions of the model."""
    limit = requested if type(requested) is int and requested > 2 else tokenizer.model_max_length
    return positions if limit is None else min(limit, positions)


def _buckets(rows: Sequence[Encoded], batch_size: int) -> Iterator[list[int]]:
    """Yield the indices of rows in batches, longest first: little padding, and the first batch needs most memory."""
    order = sorted(range(len(rows)), key=lambda i: -len(rows[i].ids))
    for start in range(0, len(order), batch_size):
        yield order[start : start + batch_size]
