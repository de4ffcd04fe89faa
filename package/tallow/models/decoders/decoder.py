"""The base classes of decoders: the config, the model without a head, and models with a head.

Letters: B batch, T positions, D width.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tallow import devices
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError
from tallow.models.config import Config, end_ids, labels_of
from tallow.models.pretrained import PretrainedModel
from tallow.nn.attention import key_mask, local_mask
from tallow.nn.cache import KVCache, Uncached
from tallow.nn.embedding import Embedding
from tallow.nn.state_memory import LayerShape

HEADS = ("lm_head.", "score.", "classifier.", "qa_outputs.")
OTHER_PARTS = ("mtp.", "model.visual.")  # heads that predict further tokens, and encoders of images
# Old versions saved these, although they follow from the config: rotary angles, and the masks of GPT-2.
DERIVED = ("rotary_emb.inv_freq", ".attn.bias", ".attn.masked_bias")
_LAYER = re.compile(r"(?:.*\.)?layers\.([0-9]{1,9})\.")


@dataclass(frozen=True, kw_only=True)
class DecoderConfig(Config):
    """Config entries that all decoders read.

    Attributes:
        eos_token_id: the ids that end a text.
        pad_token_id: padding, which a classifier skips at the end of a text; None limits it to one text per call.
        labels: the labels of a classifier, in the order of its logits; `id2label` in the file.
        classifier_dropout: the dropout probability before a token classifier.
    """

    tie_word_embeddings: bool = False
    initializer_range: float = 0.02
    bos_token_id: int = 1
    eos_token_id: tuple[int, ...] = (2,)
    pad_token_id: int | None = None
    labels: tuple[str, ...] = ("LABEL_0", "LABEL_1")
    classifier_dropout: float = 0.1

    computed: ClassVar[Mapping[str, tuple[Any, ...]]] = {"is_causal": (True,)}

    @property
    def sees_both_sides(self) -> bool:
        """True if a position sees those after it too, as in a decoder that was trained to encode texts."""
        return False

    @property
    def further_layers(self) -> int:
        """The number of layers in a checkpoint after those of the model, which predict further tokens."""
        return 0

    def is_of_others(self, name: str) -> bool:
        """Return whether a tensor of a checkpoint is of a part that predicts further tokens, or of another that a model
        for texts does not have."""
        found = _LAYER.match(name) if self.further_layers else None
        first: int = getattr(self, "num_hidden_layers", 0)
        is_further = found is not None and first <= int(found[1]) < first + self.further_layers
        return is_further or name.startswith(OTHER_PARTS) or name.endswith(DERIVED)

    @property
    def layer_shapes(self) -> Sequence[LayerShape] | None:
        """The sizes of each part of a cache: of keys and values, or of states. None means that all layers have keys and
        values of the same sizes."""
        return None

    @classmethod
    def prepare(cls, entries: dict[str, Any]) -> None:
        end_ids(entries)
        labels_of(entries)


class DecoderModule(PretrainedModel):
    """The base of decoders with and without heads."""

    def is_superfluous(self, name: str) -> bool:
        return name.startswith(HEADS) or self.config.is_of_others(name)


class DecoderModel(DecoderModule):
    """The base of decoders without a head.

    Args:
        config: the sizes.
        device, dtype: of the parameters; on device "meta" they take no memory, for `load_state_dict(assign=True)`.
    """

    @property
    @abstractmethod
    def token_embedding(self) -> Embedding:
        """The embedding of token ids."""

    @property
    @abstractmethod
    def context_length(self) -> int:
        """The most positions the model can read."""

    @abstractmethod
    def decode(self, tokens_BT: Tensor, cache: KVCache | None) -> Tensor:
        """Return the hidden states (B, T, D). With a cache, the tokens follow those in it, and are appended to it."""

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, *, cache: KVCache | None = None
    ) -> Tensor:
        """Return the hidden states (B, T, D) of tokens.

        Args:
            attention_mask: 1 or True for text, 0 or False for padding at either end of a row; None means no padding.
                The output at padding is meaningless.
            cache: from `CausalLM.new_cache`, which holds the padding itself; the tokens follow those in it.

        Shapes:  both (B, T), of integers
        Raises:  ArgumentError for padding between tokens of a text, for both a mask and a cache, for positions beyond
                 the context of a model with learned position embeddings, and for a cache of a model whose positions
                 see both sides
        """
        if self.config.sees_both_sides:
            if cache is not None:
                raise ArgumentError(
                    f"a cache for a {type(self).__name__} whose positions see those after them",
                    hint="pass whole texts",
                )
            return self.decode(input_ids, BothSides(input_ids, attention_mask))
        if attention_mask is not None:
            if cache is not None:
                raise ArgumentError(
                    "both an attention_mask and a cache", hint="pass the padding to model.new_cache(padding=...)"
                )
            cache = uncached(attention_mask)
        return self.decode(input_ids, cache)


class BothSides(Uncached):
    """The masks of texts in which a position sees those on both sides, with the interface of a KVCache.

    Args:    attention_mask: as DecoderModel.forward
    """

    def __init__(self, tokens_BT: Tensor, attention_mask: Tensor | None) -> None:
        super().__init__(tokens_BT.shape[0], None)
        self._tokens_BT = tokens_BT
        self._keys = None if attention_mask is None else key_mask(attention_mask)

    def mask(self, distance: int | None) -> Tensor | None:
        """Return the mask of keys, for `two_sided_attention`.

        Args:    distance: to the furthest position that a query sees; None means all
        """
        if distance is None:
            return self._keys
        if distance not in self.masks:
            if (mask := local_mask(self._tokens_BT, self._keys, distance)) is None:
                return None
            self.masks[distance] = mask
        return self.masks[distance]


class DecoderHead(DecoderModule):
    """The base of decoders with a head. Weights are named as in the checkpoints.

    Attributes:
        model_class: the decoder. The config class and the name in checkpoints are the decoder's, unless overridden.
    """

    model_class: ClassVar[type[DecoderModel]]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "model_class" in vars(cls):
            for name in ("config_class", "base_model_prefix"):
                if name not in vars(cls):
                    setattr(cls, name, getattr(cls.model_class, name))

    def __init__(self, config: Any, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config)
        make: Callable[..., DecoderModel] = self.model_class
        self.add_module(self.base_model_prefix, make(config, device, dtype))

    @property
    def base_model(self) -> DecoderModel:
        """The decoder inside a model with a head."""
        return getattr(self, self.base_model_prefix)


def uncached(attention_mask_BT: Tensor) -> Uncached | None:
    """Return the left padding of each row, or None without any. A decoder sees only what is to the left, so it need
    not know the right padding.

    Raises:  ArgumentError for padding between tokens of a text
    """
    array = attention_mask_BT.array
    mask_BT = np.asarray(devices.backend_of(array).to_host(array)).astype(np.bool_)
    batch, length = mask_BT.shape
    starts_B = np.where(mask_BT.any(axis=1), mask_BT.argmax(axis=1), 0)
    positions = np.arange(length)
    seen_BT = (positions >= starts_B[:, None]) & (positions < (starts_B + mask_BT.sum(axis=1))[:, None])
    if (seen_BT != mask_BT).any():
        row = int((seen_BT != mask_BT).any(axis=1).argmax())
        raise ArgumentError(
            f"attention_mask: row {row} has padding between tokens of its text", hint="put the padding at an end"
        )
    return Uncached(batch, starts_B.tolist()) if starts_B.any() else None
