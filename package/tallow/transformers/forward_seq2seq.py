"""`forward` of encoder-decoder models of texts and of Whisper, under transformers' names.

Letters: B batch, T positions of the decoder, S positions of the source, D width, V vocabulary, M mel bins.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, NamedTuple

import numpy as np

from tallow import devices
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError
from tallow.models.seq2seq.mbart import wrapped
from tallow.models.seq2seq.model import SourceDecoder, Sources, shift_right
from tallow.nn.attention import key_mask
from tallow.nn.cache import KVCache
from tallow.tape.modes import mode
from tallow.transformers import losses
from tallow.transformers.cache_utils import Cache, DynamicCache, EncoderDecoderCache
from tallow.transformers.decoder_masks import RecordedTexts
from tallow.transformers.forward_common import Options, check_texts, embeddings, one_input, placeholder_ids
from tallow.transformers.generation.whisper import WhisperGenerationMixin
from tallow.transformers.modeling_outputs import BaseModelOutput, Seq2SeqLMOutput, Seq2SeqModelOutput

# The model types that return no cache beside a loss, as in transformers.
CACHE_WITHOUT_LABELS = ("bart", "marian", "mbart", "pegasus")


class Decoder(NamedTuple):
    """The arguments of `forward` about the decoder."""

    ids: Tensor | None
    mask: Tensor | None
    embeds: Tensor | None
    past: Any
    use_cache: bool | None


class Seq2SeqForward:
    """The base of encoder-decoder models."""

    config: Any
    main_input_name: str
    output_class: Any = Seq2SeqLMOutput
    copies_source = False  # the decoder gets the source where a call has no text for it
    base_model_prefix: str

    def _encode(self, options: Options, ids: Any, mask: Tensor | None, embeds: Tensor | None) -> BaseModelOutput:
        """Return the encoder's result."""
        one_input(self, ids, embeds)
        if self.main_input_name == "input_ids":
            check_texts(self, ids, embeds, mask)
        ids = placeholder_ids(embeds, self.config.pad_token_id) if ids is None and embeds is not None else ids
        with ExitStack() as stack:
            stack.enter_context(embeddings(self._table("encoder"), embeds))
            captured = stack.enter_context(options.capture(self._stack("encoder")))
            hidden = self.encode(ids, mask)  # type: ignore[attr-defined]
        return BaseModelOutput(
            last_hidden_state=hidden,
            hidden_states=captured.hidden_states(hidden),
            attentions=captured.attentions(),
        )

    def _stack(self, name: str) -> Any:
        return getattr(self._inner(), name)

    def _inner(self) -> Any:
        """Return what holds the encoder and the decoder."""
        return getattr(self, self.base_model_prefix, self)

    def _table(self, name: str) -> Any:
        """Return the embedding of tokens of the encoder or the decoder."""
        return self._stack(name).embed_tokens or self._inner().shared

    def _write(
        self, options: Options, encoded: BaseModelOutput, source_mask: Tensor | None, decoder: Decoder
    ) -> tuple[Tensor, dict[str, Any]]:
        """Run the decoder.  Returns the head's input (B, T, D), and the fields of a result"""
        hidden_source = encoded.last_hidden_state
        assert hidden_source is not None
        names = "decoder_input_ids and decoder_inputs_embeds"
        one_input(self, decoder.ids, decoder.embeds, names)
        ids = decoder.ids
        if ids is None:
            assert decoder.embeds is not None
            ids = placeholder_ids(decoder.embeds, self.config.pad_token_id)
        check_texts(self, decoder.ids, decoder.embeds, decoder.mask, cached=decoder.past is not None)
        check_right_padding(self, decoder.mask)
        past = self._past(decoder)
        source = None if past is None or not past.get_seq_length() else past.source
        if source is None:
            source = self._source(hidden_source, source_mask)
        memory: Any = None
        if past is not None:
            memory = past.self_attention_cache.memory_for(self._core(source), ids.shape[0])
            if not hasattr(memory, "sources"):
                past.source = source
            if self._records():
                memory = RecordedTexts(memory, past.self_attention_cache)
        with ExitStack() as stack:
            stack.enter_context(embeddings(self._table("decoder"), decoder.embeds))
            captured = stack.enter_context(options.capture(self._stack("decoder")))
            unscaled: list[Tensor] = []
            note = self._stack("decoder").register_forward_hook(lambda _, __, output: unscaled.append(output))
            stack.callback(note.remove)
            hidden = self._decode(ids, source, memory)
        if self.output_class is Seq2SeqModelOutput:
            hidden = unscaled[0]  # without the factor that T5's head has
        return hidden, {
            "past_key_values": past,
            "decoder_hidden_states": captured.hidden_states(unscaled[0]),
            "decoder_attentions": captured.attentions(0, 2),
            "cross_attentions": captured.attentions(1, 2),
            "encoder_last_hidden_state": hidden_source,
            "encoder_hidden_states": encoded.hidden_states,
            "encoder_attentions": encoded.attentions,
        }

    def _source(self, hidden: Tensor, mask: Tensor | None) -> Any:
        return Sources(self.cross_keys(hidden), None if mask is None else key_mask(mask))  # type: ignore[attr-defined]

    def _core(self, source: Any) -> Any:
        """Return what makes the memory of a cache."""
        decoder = SourceDecoder(self, source)  # type: ignore[arg-type]

        def make(batch: int, length: int | None, dtype: Any) -> KVCache:
            most = decoder.context_length if length is None else length
            return decoder.new_cache(length=most, batch=batch, growing=True, dtype=dtype)

        return MemoryOf(make, decoder.context_length)

    def _decode(self, ids: Tensor, source: Any, memory: KVCache | None) -> Tensor:
        return self.decode(ids, source, memory)  # type: ignore[attr-defined]

    def _past(self, decoder: Decoder) -> EncoderDecoderCache | None:
        wanted = self.config.use_cache if decoder.use_cache is None else decoder.use_cache
        trains = self._records() and self.training and not decoder.use_cache  # type: ignore[attr-defined]
        if decoder.past is None and (not wanted or trains):
            return None
        past = decoder.past
        if past is None or isinstance(past, Cache):
            past = EncoderDecoderCache(DynamicCache() if past is None else past, DynamicCache())
        if not isinstance(past, EncoderDecoderCache):
            raise ArgumentError(
                f"past_key_values is a {type(past).__name__}",
                hint="pass an EncoderDecoderCache, or what a call returned",
            )
        return past

    def _records(self) -> bool:
        return mode.recording and any(p.requires_grad for p in self.parameters())  # type: ignore[attr-defined]

    def _begin(self, ids: Any, decoder: Decoder, labels: Tensor | None) -> Decoder:
        """Return the decoder's arguments, its input made of the labels where there is none."""
        if decoder.ids is not None or decoder.embeds is not None:
            return decoder
        if labels is not None:
            return decoder._replace(ids=self.prepare_decoder_input_ids_from_labels(labels))
        copies = self.copies_source or self.config.model_type in ("bart", "mbart")  # they do in their training
        if copies and ids is not None:
            return decoder._replace(ids=self.prepare_decoder_input_ids_from_labels(ids))
        raise ArgumentError(
            f"{type(self).__name__}: neither decoder_input_ids nor labels", hint="pass the texts, or labels to train"
        )

    def _start_id(self) -> int:
        start = self.config.decoder_start_token_id
        return int(self.config.pad_token_id if start is None else start)

    def prepare_decoder_input_ids_from_labels(self, labels: Tensor) -> Tensor:
        """Return the decoder's input for labels (B, T): the start, then the labels without the last."""
        if self.config.model_type == "mbart":
            return wrapped(labels, self.config.pad_token_id)
        return shift_right(labels, self._start_id(), self.config.pad_token_id)

    def _finish(self, options: Options, hidden: Tensor, states: dict[str, Any], labels: Tensor | None) -> Any:
        if self.output_class is Seq2SeqModelOutput:
            return options.result(Seq2SeqModelOutput, last_hidden_state=hidden, **states)
        logits = self.logits(hidden)  # type: ignore[attr-defined]
        loss = None if labels is None else losses.cross_entropy(logits, labels)  # of the batch, as in transformers
        return options.result(Seq2SeqLMOutput, loss=loss, logits=logits, **states)


class TextSeq2SeqForward(Seq2SeqForward):
    """Turns text into text."""

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        decoder_attention_mask: Tensor | None = None,
        encoder_outputs: Any = None,
        past_key_values: Any = None,
        inputs_embeds: Tensor | None = None,
        decoder_inputs_embeds: Tensor | None = None,
        labels: Tensor | None = None,
        use_cache: bool | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
        **kwargs: Any,
    ) -> Any:
        """Return logits (B, T, V) of the next token of each text, and with labels the loss.

        Args:
            input_ids, attention_mask: (B, S), of the sources.
            decoder_input_ids: (B, T), the texts so far; None means the labels, shifted to the right.
            decoder_attention_mask: (B, T), 0 for padding at the end.
            encoder_outputs: of an earlier call, in place of input_ids.
            past_key_values: a cache of the texts so far.
            inputs_embeds, decoder_inputs_embeds: (B, S, D) and (B, T, D), in place of ids.
            labels: (B, T), the next token of each position; -100 does not count.
            use_cache: return a cache; None means as the config says, and not in training while autograd records.
            output_attentions, output_hidden_states, return_dict: None means as the config says.

        Raises:  ArgumentError
        """
        options = Options(self, output_hidden_states, output_attentions, return_dict, kwargs)
        if labels is not None and self.config.model_type in CACHE_WITHOUT_LABELS:
            use_cache = False
        decoder = Decoder(decoder_input_ids, decoder_attention_mask, decoder_inputs_embeds, past_key_values, use_cache)
        decoder = self._begin(input_ids, decoder, labels)
        if encoder_outputs is None:
            encoded = self._encode(options, input_ids, attention_mask, inputs_embeds)
        else:
            encoded = as_encoded(encoder_outputs)
        hidden, states = self._write(options, encoded, attention_mask, decoder)
        return self._finish(options, hidden, states, labels)


class TextSeq2SeqModelForward(TextSeq2SeqForward):
    """An encoder and a decoder without a head."""

    output_class = Seq2SeqModelOutput


class SpeechForward(WhisperGenerationMixin, Seq2SeqForward):
    """Whisper."""

    main_input_name = "input_features"

    def forward(
        self,
        input_features: Tensor | None = None,
        attention_mask: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        decoder_attention_mask: Tensor | None = None,
        encoder_outputs: Any = None,
        past_key_values: Any = None,
        decoder_inputs_embeds: Tensor | None = None,
        labels: Tensor | None = None,
        use_cache: bool | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
        **kwargs: Any,
    ) -> Any:
        """Return logits (B, T, V) of the next token of what was said, and with labels the loss.

        Args:
            input_features: (B, M, 2 S), the spectrograms.
            attention_mask: has no effect: the sound is as long as the model reads.
            others: as of the models of texts

        Raises:  ArgumentError, ShapeError
        """
        options = Options(self, output_hidden_states, output_attentions, return_dict, kwargs)
        decoder = Decoder(decoder_input_ids, decoder_attention_mask, decoder_inputs_embeds, past_key_values, use_cache)
        decoder = self._begin(None, decoder, labels)
        if encoder_outputs is None:
            encoded = self._encode(options, input_features, None, None)
        else:
            encoded = as_encoded(encoder_outputs)
        hidden, states = self._write(options, encoded, None, decoder)
        return self._finish(options, hidden, states, labels)

    def encode(self, input_features: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """Return the hidden states (B, S, D) of spectrograms (B, M, 2 S)."""
        return self._stack("encoder")(input_features)

    def freeze_encoder(self) -> None:
        """Let the encoder's weights require no gradients, so that training leaves them."""
        self._stack("encoder").requires_grad_(False)

    def _table(self, name: str) -> Any:
        return self._stack("decoder").embed_tokens

    def _source(self, hidden: Tensor, mask: Tensor | None) -> Any:
        return self._stack("decoder").listen(hidden)

    def _core(self, source: Any) -> Any:
        return MemoryOf(lambda batch, *_: self.new_cache(batch), self.config.max_target_positions)  # type: ignore[attr-defined]

    def _decode(self, ids: Tensor, source: Any, memory: KVCache | None) -> Tensor:
        return self._stack("decoder")(ids, source, memory)


class SpeechModelForward(SpeechForward):
    """Whisper without its head."""

    output_class = Seq2SeqModelOutput


class MemoryOf:
    """Makes the memory of a cache for the decoder of an encoder-decoder model, whose texts begin without padding."""

    def __init__(self, make: Callable[..., KVCache], most: int) -> None:
        self.make, self.context_length = make, most

    def new_cache(self, *, batch: int, length: int | None = None, dtype: Any = None, **options: Any) -> KVCache:
        """Return the memory for `batch` texts.  Args: length, dtype: where the model can choose; options: no effect"""
        return self.make(batch, length, dtype)


def as_encoded(outputs: Any) -> BaseModelOutput:
    """Return an encoder's result, given as an object or a tuple."""
    return outputs if isinstance(outputs, BaseModelOutput) else BaseModelOutput(*outputs)


def check_right_padding(model: Any, mask: Tensor | None) -> None:
    """Raise ArgumentError for padding of the decoder's texts that is not at the end, where nothing sees it."""
    if mask is None:
        return
    rows = np.asarray(devices.to_host(mask.array)).astype(np.int64)
    if (np.diff(rows, axis=1) > 0).any():
        raise ArgumentError(
            f"{type(model).__name__}: decoder_attention_mask has padding before text", hint="pad on the right"
        )
