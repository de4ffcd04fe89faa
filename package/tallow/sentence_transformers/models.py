"""The modules of a SentenceTransformer: a transformer or a table of vectors, a pooling, and what follows.

Each maps a dictionary of features to one with more entries: `input_ids` and `attention_mask` (B, T), `token_embeddings`
(B, T, D), `sentence_embedding` (B, D).
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tallow.core.creation import tensor
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError
from tallow.hub import local_folder
from tallow.io import safetensors
from tallow.io.model_folder import load_folder
from tallow.models import loading
from tallow.models.config import CONFIG
from tallow.models.encoders import sentence_parts
from tallow.models.encoders.bert import BertModel
from tallow.models.encoders.distilbert import DistilBertModel
from tallow.models.encoders.sentence_folder import TEXT_CONFIGS, transformer_class, transformer_settings
from tallow.models.encoders.sentence_parts import OLDER_POOLINGS, SENTENCE
from tallow.models.text_batches import length_limit
from tallow.nn.activation import Tanh
from tallow.nn.linear import Linear
from tallow.nn.module import Module
from tallow.tape.modes import is_grad_enabled
from tallow.text.tokenizer import Tokenizer
from tallow.text.tokenizer_folder import FILES, SETTINGS, TEMPLATE

WEIGHTS = "model.safetensors"
Features = dict[str, Any]


class Transformer(Module):
    """An encoder, or a decoder for embeddings, with its tokenizer.

    Args:
        model_name_or_path: a folder or `owner/repository` of the Hub.
        max_seq_length: the most tokens of a text; None means as the folder says.
        do_lower_case: convert texts to lower case first.

    Attributes:
        auto_model: the model of `tallow.models`.
        tokenizer: the Tokenizer of `tallow.text`.
    """

    def __init__(
        self, model_name_or_path: str | Path, max_seq_length: int | None = None, *, do_lower_case: bool = False
    ) -> None:
        super().__init__()
        folder = local_folder(model_name_or_path)
        kind, texts = transformer_class(folder), transformer_settings(folder)
        unused = {"add_pooling_layer": False} if issubclass(kind, BertModel) else {}
        model = loading.read(kind, folder, None, None, None, False, load_folder(folder), **unused)
        tokenizer = Tokenizer.from_pretrained(folder)
        if max_seq_length is None:
            positions = getattr(model, "context_length", None)
            max_seq_length = length_limit(texts.get("max_seq_length"), tokenizer, positions)
        self._set(model, tokenizer, max_seq_length, do_lower_case or texts.get("do_lower_case") is True, folder)

    @classmethod
    def made(
        cls, model: Module, tokenizer: Tokenizer, length: int | None, lowercase: bool, folder: Path
    ) -> Transformer:
        """Return the module of a loaded model and the folder that it is from."""
        self = cls.__new__(cls)
        Module.__init__(self)
        self._set(model, tokenizer, length, lowercase, folder)
        return self

    def _set(self, model: Module, tokenizer: Tokenizer, length: int | None, lowercase: bool, folder: Path) -> None:
        self.auto_model, self.tokenizer = model, tokenizer
        self.max_seq_length, self.do_lower_case, self.folder = length, lowercase, folder

    @property
    def is_static(self) -> bool:
        """True for a table of vectors, which takes no special tokens."""
        return type(self.auto_model).__name__ == "StaticEmbedding"

    def tokenize(self, texts: Sequence[Any], padding: bool | str = True) -> Features:
        """Return the features of texts, or of pairs of texts; padding is at the end."""
        if not padding:
            raise ArgumentError("padding=False: texts of a batch have one length")
        rows = [tuple(text) if isinstance(text, list) else text for text in texts]
        if self.do_lower_case:
            rows = [text.lower() if isinstance(text, str) else tuple(map(str.lower, text)) for text in rows]
        encoded = self.tokenizer.encode_each(
            rows, max_length=self.max_seq_length, add_special_tokens=not self.is_static
        )
        batch = self.tokenizer.pad(encoded, side="right")
        return {"input_ids": tensor(batch.input_ids), "attention_mask": tensor(batch.attention_mask)}

    def forward(self, features: Features) -> Features:
        """Return the features with `token_embeddings`, those of every position."""
        options: dict[str, Any] = {}
        # Poolings ignore padding; only inference has the kernels for it.
        if isinstance(self.auto_model, BertModel | DistilBertModel) and not is_grad_enabled():
            options["skip_padding"] = True
        mask = features["attention_mask"]
        found = self.auto_model(features["input_ids"], *([] if self.is_static else [mask]), **options)
        return features | {"token_embeddings": found if isinstance(found, Tensor) else found.last_hidden_state}

    def get_word_embedding_dimension(self) -> int:
        """Return the width of the model."""
        if self.is_static:
            return int(self.auto_model.embedding.embedding_dim)
        return int(self.auto_model.config.hidden_size)

    get_embedding_dimension = get_word_embedding_dimension

    def save(self, output_path: str | Path) -> None:
        """Write the weights, and the config and the tokenizer of the folder that the model is from.  Raises: OSError"""
        folder = Path(output_path)
        folder.mkdir(parents=True, exist_ok=True)
        save_weights(self.auto_model, folder)
        names = {*(name for names in FILES for name in names), *SETTINGS, TEMPLATE, CONFIG}
        for name in names:
            if (self.folder / name).is_file() and (self.folder / name).resolve() != (folder / name).resolve():
                shutil.copyfile(self.folder / name, folder / name)
        if not self.is_static:
            settings = {"max_seq_length": self.max_seq_length, "do_lower_case": self.do_lower_case}
            write_json(folder / TEXT_CONFIGS[0], settings)


class Pooling(Module):
    """Pools the positions of each text to one vector.

    Args:
        word_embedding_dimension: the width of the positions.
        pooling_mode: "mean", "cls", "max", "mean_sqrt_len_tokens", "weightedmean" or "lasttoken"; or several.
        include_prompt: pool the prompt together with the text.
        kwargs: older names, such as pooling_mode_cls_token=True, in place of pooling_mode.

    Raises:  ArgumentError for an unknown mode
    """

    def __init__(
        self,
        word_embedding_dimension: int,
        pooling_mode: str | Sequence[str] | None = None,
        include_prompt: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        if unknown := kwargs.keys() - OLDER_POOLINGS.keys():
            raise ArgumentError(f"Pooling: unknown argument {sorted(unknown)[0]!r}")
        modes = [OLDER_POOLINGS[name] for name in OLDER_POOLINGS if kwargs.get(name)]
        if pooling_mode is not None:
            modes = [pooling_mode] if isinstance(pooling_mode, str) else list(pooling_mode)
        self.word_embedding_dimension = word_embedding_dimension
        self.part = sentence_parts.Pooling(*(modes or ["mean"]), include_prompt=include_prompt)

    @property
    def include_prompt(self) -> bool:
        """True to pool the prompt together with the text."""
        return self.part.include_prompt

    @include_prompt.setter
    def include_prompt(self, value: bool) -> None:
        self.part.include_prompt = value

    @property
    def pooling_output_dimension(self) -> int:
        """The width of the vectors."""
        return self.word_embedding_dimension * len(self.part.modes)

    def get_sentence_embedding_dimension(self) -> int:
        """Return the width of the vectors."""
        return self.pooling_output_dimension

    def get_pooling_mode_str(self) -> str:
        """Return the modes with "+" between."""
        return "+".join(self.part.modes)

    def forward(self, features: Features) -> Features:
        """Return the features with `sentence_embedding`."""
        skip = 0 if self.include_prompt else features.get("prompt_length", 0)
        return features | {SENTENCE: self.part(features["token_embeddings"], features["attention_mask"], skip)}

    def save(self, output_path: str | Path) -> None:
        """Write the config, in the names that all versions read.  Raises: OSError"""
        on = {older: name in self.part.modes for older, name in OLDER_POOLINGS.items()}
        width = {"word_embedding_dimension": self.word_embedding_dimension}
        write_json(Path(output_path) / CONFIG, width | on | {"include_prompt": self.include_prompt})


class Head(Module):
    """A module of `tallow.models` for the pooled vectors.

    Args:  part: maps vectors (B, D) to (B, D').
    """

    def __init__(self, part: Module) -> None:
        super().__init__()
        self.part = part

    def forward(self, features: Features) -> Features:
        """Return the features with another `sentence_embedding`."""
        return features | {SENTENCE: self.part(features[SENTENCE])}

    def save(self, output_path: str | Path) -> None:
        """Write nothing: there are no weights and no settings."""
        Path(output_path).mkdir(parents=True, exist_ok=True)


class Normalize(Head):
    """Scales vectors to length 1."""

    def __init__(self) -> None:
        super().__init__(sentence_parts.Normalize())


class Dropout(Head):
    """Nothing: training drops none of the pooled numbers."""


class Dense(Head):
    """activation(linear(x))

    Args:  activation_function: Tanh by default
    """

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, activation_function: Module | None = None
    ) -> None:
        activation = Tanh() if activation_function is None else activation_function
        super().__init__(sentence_parts.Dense(Linear(in_features, out_features, bias=bias), activation))

    @property
    def linear(self) -> Linear:
        """The layer with the weights."""
        return self.part.linear

    def get_sentence_embedding_dimension(self) -> int:
        """Return the width of the vectors."""
        return int(self.linear.out_features)

    def save(self, output_path: str | Path) -> None:
        """Write the config and the weights.  Raises: OSError"""
        folder = Path(output_path)
        kind = type(self.part.activation_function).__name__
        place = "linear" if kind == "Identity" else "activation"
        entries: dict[str, Any] = {"in_features": self.linear.in_features, "out_features": self.linear.out_features}
        entries |= {"bias": self.linear.bias is not None, "activation_function": f"torch.nn.modules.{place}.{kind}"}
        if self.part.residual is not None:
            entries |= {"use_residual": True}
        write_json(folder / CONFIG, entries)
        save_weights(self.part, folder)


class LayerNorm(Head):
    """Normalizes the numbers of each vector.

    Args:  dimension: the width
    """

    def __init__(self, dimension: int) -> None:
        super().__init__(sentence_parts.Norm(dimension).to_empty(device="cpu"))
        self.part.norm.reset_parameters()

    def save(self, output_path: str | Path) -> None:
        """Write the config and the weights.  Raises: OSError"""
        folder = Path(output_path)
        write_json(folder / CONFIG, {"dimension": int(self.part.norm.normalized_shape[0])})
        save_weights(self.part, folder)


# The class of `tallow.models` -> the class here.
WRAPPERS: dict[type[Module], type[Head]] = {
    sentence_parts.Normalize: Normalize,
    sentence_parts.Dense: Dense,
    sentence_parts.Norm: LayerNorm,
}


def wrapped(part: Module) -> Head:
    """Return a part of a SentenceEncoder as a module here."""
    made = WRAPPERS.get(type(part), Dropout)
    head = made.__new__(made)
    Head.__init__(head, part)
    return head


def write_json(path: Path, entries: Any) -> None:
    """Write JSON to a file, in a folder that may not exist.  Raises: OSError"""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(entries, indent=2), encoding="utf-8")


def save_weights(module: Module, folder: Path) -> None:
    """Write the weights of a module.  Raises: ArgumentError for quantised ones; OSError"""
    state = module.state_dict()
    if not all(isinstance(each, Tensor) for each in state.values()):
        raise ArgumentError("quantised weights cannot be saved here", hint="load the model without quant")
    values = {name: each.detach().cpu().contiguous() for name, each in state.items()}
    safetensors.save(values, folder / WEIGHTS, {"format": "pt"})
