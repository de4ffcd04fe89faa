"""The base of encoder-decoder models of texts: an encoder reads a source, and a decoder writes a text about it.

Letters: B texts, T positions, A sources (B is a multiple of A), S positions of a source, D width, H heads, K head
width, V vocabulary.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np

from tallow import devices, dtypes
from tallow.core.tensor import Tensor, wrap
from tallow.errors import ArgumentError
from tallow.generation import LogitsProcessor, Sample
from tallow.generation.sequence import check_prompt
from tallow.models.causal_lm import CacheShape, kv_dtype
from tallow.models.config import Config, end_ids, labels_of
from tallow.models.foreign_names import refuses_foreign
from tallow.models.pretrained import PretrainedModel, tied_logits
from tallow.models.seq2seq.cross_layers import CrossKeys, select_sources
from tallow.models.text_generation import TextGeneration
from tallow.nn import functional as F
from tallow.nn.attention import key_mask
from tallow.nn.cache import KVCache
from tallow.nn.embedding import Embedding
from tallow.nn.linear import Linear
from tallow.tape.modes import no_grad

if TYPE_CHECKING:  # programs that constrain nothing do not import it
    from tallow.generation.constrain import Grammar

IGNORED = -100  # a label that does not count
MOST_TOKENS = 512  # of a text, where neither the caller nor the model limits it


@dataclass(frozen=True, kw_only=True)
class Seq2SeqConfig(Config):
    """Config entries that all encoder-decoder models read.

    Attributes:
        pad_token_id: padding at the end of a source, and in the decoder's input for labels that do not count.
        decoder_start_token_id: the first token that the decoder reads; None means padding.
        eos_token_id: the ids that end a text.
        tie_word_embeddings: the head shares the matrix of the token embedding.
        labels: the names of the labels of a classifier, in the order of its logits; from `id2label`.
        classifier_dropout: before the layers of a classifier, in training.
        own_tables: "encoder" and "decoder", if they have a token embedding of their own. Not in Hugging Face's configs:
            the weights decide.
    """

    vocab_size: int
    pad_token_id: int = 0
    decoder_start_token_id: int | None = None
    eos_token_id: tuple[int, ...] = (1,)
    tie_word_embeddings: bool = True
    labels: tuple[str, ...] = ("LABEL_0", "LABEL_1")
    classifier_dropout: float = 0.0
    own_tables: tuple[str, ...] = ()

    computed: ClassVar = {"is_encoder_decoder": (True,)}
    unread: ClassVar[frozenset[str]] = frozenset({"own_tables"})

    @classmethod
    def prepare(cls, entries: dict[str, Any]) -> None:
        end_ids(entries)
        labels_of(entries)

    def with_own(self, weights: Collection[str]) -> Self:
        """Return the config of a model with these weights of its own: names of embeddings and of the head."""
        tied = self.tie_word_embeddings and "lm_head.weight" not in weights
        own = [
            part
            for part in ("encoder", "decoder")
            if part in self.own_tables or any(f"{part}.embed_tokens." in name for name in weights)
        ]
        return replace(self, tie_word_embeddings=tied, own_tables=tuple(own))

    @property
    def text_vocab_size(self) -> int:
        """The number of tokens in the vocabulary of the decoder's texts."""
        return self.vocab_size

    @property
    def start_id(self) -> int:
        """The first token that the decoder reads."""
        return self.pad_token_id if self.decoder_start_token_id is None else self.decoder_start_token_id

    def shifted(self, labels_BT: Tensor) -> Tensor:
        """Return the decoder's input for labels: the start token, and all labels but the last."""
        return shift_right(labels_BT, self.start_id, self.pad_token_id)


@dataclass(frozen=True)
class Sources:
    """Encoded sources in the form that a decoder attends to.

    Attributes:
        layers: for each layer of the decoder.
        mask: (A, 1, 1, S), True at text; None without padding.
    """

    layers: list[CrossKeys]
    mask: Tensor | None = None

    @property
    def count(self) -> int:
        """A"""
        return self.layers[0].keys.shape[0]

    def select(self, rows: Sequence[int]) -> Sources:
        """Return the sources of these rows of a batch. A single source is that of all rows."""
        if self.count == 1:
            return self
        return Sources(select_sources(self.layers, rows), None if self.mask is None else self.mask[list(rows)])


class SourceCache(KVCache):
    """The cache of a decoder, and the sources of its rows.  Args: as KVCache"""

    def __init__(self, sources: Sources, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.sources = sources

    def select(self, rows: Sequence[int]) -> None:
        if list(rows) != list(range(self.batch)):
            self.sources = self.sources.select(rows)
        super().select(rows)


class Seq2SeqLMOutput(NamedTuple):
    """The output of an encoder-decoder model.

    Attributes:
        loss: the mean cross-entropy of the labels; None without labels.
        logits: (B, T, V), of the next token for each position.
        encoder_last_hidden_state: (B, S, D).
    """

    loss: Tensor | None
    logits: Tensor
    encoder_last_hidden_state: Tensor


class SourceDecoder:
    """A decoder with the sources it writes about: a language model for the functions of `tallow.generation`.

    Texts begin with `model.start_ids`. One source can have any number of texts; otherwise each source has one.

    Example:
        decoder = model.decoder_for([ids])
        tokens = generate(decoder, model.start_ids, max_tokens=100, stop_ids=model.stop_ids)
    """

    def __init__(self, model: Seq2SeqLM, sources: Sources) -> None:
        self.model = model
        self.sources = sources

    @property
    def context_length(self) -> int:
        """The most positions the decoder can read."""
        return self.model.context_length

    @property
    def vocab_size(self) -> int:
        """The number of tokens in the vocabulary."""
        return self.model.config.text_vocab_size

    def new_cache(
        self,
        *,
        length: int,
        batch: int = 1,
        padding: Sequence[int] | None = None,
        growing: bool = False,
        dtype: Any = None,
    ) -> SourceCache:
        """Return an empty cache for texts of at most `length` tokens.

        Args:    as `CausalLM.new_cache`
        Raises:  ArgumentError for padding, another number of texts than of sources, and another dtype
        """
        if padding is not None and any(padding):
            raise ArgumentError("a decoder's texts of different lengths", hint="begin each with model.start_ids")
        if self.sources.count not in (1, batch):
            raise ArgumentError(f"{batch} texts for {self.sources.count} sources", hint="pass one text for each source")
        weight = next(self.model.parameters())
        layers, heads, width = self.model.cache_shape
        options = {"growing": growing, "dtype": kv_dtype(dtype, weight), "device": weight.device}
        return SourceCache(self.sources, layers, batch, heads, length, width, **options)

    def next_logits(self, tokens: Sequence[int], cache: SourceCache) -> dtypes.Array:
        """As `CausalLM.next_logits`"""
        return self.last_logits([tokens], cache)[0, 0]

    def last_logits(self, tokens: Sequence[Sequence[int]], cache: SourceCache, last: int = 1) -> dtypes.Array:
        """As `CausalLM.last_logits`"""
        tokens_BT = wrap(devices.move(np.array(tokens, np.int64), cache.device))
        with no_grad():
            hidden_BTD = self.model.decode(tokens_BT, cache.sources, cache)
            return dtypes.cast(self.model.logits(hidden_BTD[:, -last:]).array, dtypes.float32)


class Seq2SeqLM(TextGeneration, PretrainedModel):
    """An encoder-decoder model: logits of the next token of a text about a source.

    Example:
        model = AutoModel.from_pretrained("google/flan-t5-small")
        print("".join(model.generate_text("translate English to German: The house is small.")))
    """

    lm_head: Linear | None

    @abstractmethod
    def encode(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """Return the hidden states (B, S, D) of sources.

        Args:    attention_mask: 1 or True for text, 0 or False for padding; None means no padding
        Shapes:  both (B, S), of integers
        """

    @abstractmethod
    def cross_keys(self, encoded_ASD: Tensor) -> list[CrossKeys]:
        """Return the keys and values of encoded sources for each layer of the decoder."""

    @abstractmethod
    def decode(self, tokens_BT: Tensor, sources: Sources, cache: KVCache | None = None) -> Tensor:
        """Return the head's input (B, T, D). With a cache, the tokens follow those in it, and are appended to it."""

    @property
    @abstractmethod
    def token_embedding(self) -> Embedding:
        """The embedding of token ids whose matrix may also be the head."""

    @property
    @abstractmethod
    def cache_shape(self) -> CacheShape:
        """The sizes of the decoder's cache."""

    @property
    @abstractmethod
    def context_length(self) -> int:
        """The most positions of a source, and of a text."""

    @property
    def vocab_size(self) -> int:
        """The number of tokens in the vocabulary of sources."""
        return self.config.vocab_size

    @property
    def head_table(self) -> Embedding | None:
        return self.token_embedding if self.lm_head is None else None

    def logits(self, hidden_BTD: Tensor) -> Tensor:
        """Return logits (B, T, V) from the head's input (B, T, D)."""
        return tied_logits(hidden_BTD, self.token_embedding) if self.lm_head is None else self.lm_head(hidden_BTD)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        *,
        labels: Tensor | None = None,
    ) -> Seq2SeqLMOutput:
        """Return logits of the next token of each text, and the loss of the labels.

        Args:
            attention_mask: 1 or True for text of the sources, 0 or False for padding; None means no padding.
            decoder_input_ids: the texts so far. None means the labels, shifted to the right. A position sees only those
                before it, so padding at the end needs no mask.
            labels: the next token of each position; -100 does not count.

        Shapes:  sources (B, S); texts and labels (B, T)
        Raises:  ArgumentError without decoder_input_ids and labels
        """
        if decoder_input_ids is None:
            if labels is None:
                raise ArgumentError("neither decoder_input_ids nor labels", hint="pass the texts, or labels to train")
            decoder_input_ids = self.config.shifted(labels)
        encoded_BSD = self.encode(input_ids, attention_mask)
        sources = Sources(self.cross_keys(encoded_BSD), None if attention_mask is None else key_mask(attention_mask))
        logits_BTV = self.logits(self.decode(decoder_input_ids, sources))
        loss = None
        if labels is not None:
            loss = F.cross_entropy(logits_BTV.flatten(0, 1), labels.flatten(), ignore_index=IGNORED)
        return Seq2SeqLMOutput(loss, logits_BTV, encoded_BSD)

    # ----------------------------------------------------------------------------------------------------------- text

    @property
    def stop_ids(self) -> frozenset[int]:
        """The tokens that end a text, from the model's `generation_config.json`, or else its config."""
        return frozenset(self.generation_config.eos_token_id or self.config.eos_token_id)

    @property
    def start_ids(self) -> list[int]:
        """The tokens that a text of the decoder begins with."""
        config = self.generation_config
        named = [token for token in (config.decoder_start_token_id, config.bos_token_id) if token is not None]
        return [*named, self.config.start_id][:1]

    def decoder_for(self, texts: Sequence[Sequence[int]]) -> SourceDecoder:
        """Encode sources, and return the decoder that writes about them.

        Args:    texts: ids of each source
        Raises:  ArgumentError for no sources, an empty one, ids outside the vocabulary, and too long sources
        """
        if not texts:
            raise ArgumentError("decoder_for: no sources", hint="pass one or more")
        for text in texts:
            check_prompt(self, text, None)
        longest = max(map(len, texts))
        pad, device = self.config.pad_token_id, next(self.parameters()).device
        ids = np.array([[*text, *[pad] * (longest - len(text))] for text in texts], np.int64)
        mask = None
        if min(map(len, texts)) < longest:
            mask = wrap(devices.move(np.array([np.arange(longest) < len(text) for text in texts]), device))
        with no_grad():
            encoded_ASD = self.encode(wrap(devices.move(ids, device)), mask)
            layers = [CrossKeys(*(each.contiguous() for each in pair)) for pair in self.cross_keys(encoded_ASD)]
        return SourceDecoder(self, Sources(layers, None if mask is None else key_mask(mask)))

    @refuses_foreign
    def generate_ids(
        self,
        source: Sequence[int],
        *,
        max_tokens: int | None = None,
        sample: Sample | None = None,
        num_beams: int | None = None,
        processors: Sequence[LogitsProcessor] = (),
        cache_dtype: Any = None,
    ) -> Iterator[int]:
        """Write the text about a source, as `generate_text`, and yield its ids.

        Args:    source: its ids, with special tokens
        Raises:  as `generate_text`
        """
        prompt = self.start_ids
        if max_tokens is None and self.generation_config.most_tokens(len(prompt)) is None:
            max_tokens = min(MOST_TOKENS, self.context_length)
        options = {"max_tokens": max_tokens, "sample": sample, "num_beams": num_beams, "cache_dtype": cache_dtype}
        return self.write(self.decoder_for([source]), prompt, processors=processors, source=source, **options)

    @refuses_foreign
    def generate_text(
        self,
        text: str,
        *,
        max_tokens: int | None = None,
        stop: Collection[str] = (),
        sample: Sample | None = None,
        num_beams: int | None = None,
        processors: Sequence[LogitsProcessor] = (),
        grammar: Grammar | None = None,
        cache_dtype: Any = None,
    ) -> Iterator[str]:
        """Write the text about a source, such as its translation; yield pieces as they come.

        Args:
            max_tokens: None means as `generation_config.json` says, or else at most 512.
            sample: None means as in `generation_config.json`, which by default takes the likeliest token.
            num_beams: the number of texts to search with, of which the best is yielded at the end; None means as in
                `generation_config.json`, and 1 with `sample`.
            stop, processors, grammar, cache_dtype: as `CausalLM.generate_text`

        Raises:  ArgumentError for a source that is too long, and for num_beams with sampling; CheckpointError for
                 settings in `generation_config.json` that are invalid; TokenizerError
        """
        options = {"max_tokens": max_tokens, "sample": sample, "num_beams": num_beams, "cache_dtype": cache_dtype}
        processors = self._constrained(processors, grammar)
        tokens = self.generate_ids(self.tokenizer.encode_prompt(text), processors=processors, **options)
        return self._until(self.tokenizer.decode_stream(tokens), stop)


def shift_right(labels_BT: Tensor, start: int, padding: int) -> Tensor:
    """Return the decoder's input for labels: the start token, and all labels but the last."""
    shifted_BT = labels_BT.roll(1, -1)
    shifted_BT[:, 0] = start
    return shifted_BT.masked_fill(shifted_BT == IGNORED, padding)
