"""`forward` and `generate` of BLIPs, which write about images, under transformers' names.

Letters: B batch, C channels, Y and X pixels, T positions of a text, S positions of a source, D width, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tallow import dtypes
from tallow.core.creation import full, ones
from tallow.core.tensor import Tensor
from tallow.devices import to_host
from tallow.errors import ArgumentError
from tallow.models.seq2seq.model import Sources
from tallow.models.vision.blip import BlipDecoder
from tallow.nn import functional as F
from tallow.nn.attention import key_mask
from tallow.nn.cache import KVCache
from tallow.tape.modes import no_grad
from tallow.transformers.cache_utils import DynamicCache
from tallow.transformers.forward_common import Options
from tallow.transformers.forward_seq2seq import MemoryOf, check_right_padding
from tallow.transformers.generation.mixin import GenerationMixin
from tallow.transformers.modeling_outputs import CausalLMOutputWithCrossAttentions, ModelOutput

Tensors = tuple[Tensor, ...]


@dataclass
class BlipTextVisionModelOutput(ModelOutput):
    """The result of a BLIP that answers questions, about the image; with labels the loss."""

    loss: Tensor | None = None
    image_embeds: Tensor | None = None
    last_hidden_state: Tensor | None = None
    hidden_states: Tensors | None = None
    attentions: Tensors | None = None


@dataclass
class BlipForConditionalGenerationModelOutput(ModelOutput):
    """The result of a BLIP that writes captions; states and attentions are of the image."""

    loss: Tensor | None = None
    logits: Tensor | None = None
    image_embeds: Tensor | None = None
    last_hidden_state: Tensor | None = None
    hidden_states: Tensors | None = None
    attentions: Tensors | None = None


class TextWriter(GenerationMixin):
    """The decoder of a BLIP with sources, as a language model that `generate` continues.

    Args:
        model: the BLIP.
        sources: one for each text, or for each group of adjacent texts.
    """

    keeps_rows: ClassVar[bool] = True  # the sources are those of the rows

    def __init__(self, model: Any, sources: Sources) -> None:
        self.model, self.sources = model, sources
        self.config = model.config.text_config
        self.generation_config = model.generation_config
        self.device, self.dtype, self.training = model.device, model.dtype, False

    def forward(
        self,
        input_ids: Tensor,
        past_key_values: Any = None,
        use_cache: bool | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
        **kwargs: Any,
    ) -> Any:
        """Return the logits (B, T, V) of texts, which follow those in the cache.

        Args:
            use_cache: return a cache; None means where one is passed.
            output_attentions, output_hidden_states, return_dict: None means as the config says; of the texts.

        Raises:  ArgumentError for other arguments
        """
        options = Options(self, output_hidden_states, output_attentions, return_dict, kwargs)
        batch = input_ids.shape[0]
        copies = batch // self.sources.count
        sources = self.sources.select([i // copies for i in range(batch)])
        past = DynamicCache() if use_cache and past_key_values is None else past_key_values
        memory: Any = None
        if past is not None:

            def make(rows: int, length: int | None, dtype: Any) -> KVCache:
                decoder = BlipDecoder(self.model, sources)
                most = decoder.context_length if length is None else length
                return decoder.new_cache(length=most, batch=rows, growing=True, dtype=dtype)

            memory = past.memory_for(MemoryOf(make, self.model.context_length), batch)
            sources = memory.sources
        with options.capture(self.model.text_decoder.bert.encoder) as captured:
            hidden = self.model.decode(input_ids, sources, memory)
        return options.result(
            CausalLMOutputWithCrossAttentions,
            logits=self.model.logits(hidden),
            past_key_values=None if use_cache is False else past,
            hidden_states=captured.hidden_states(hidden),
            attentions=captured.attentions(0, 2),
            cross_attentions=captured.attentions(1, 2),
        )

    __call__ = forward


class BlipForward:
    """The base of BLIPs."""

    config: Any
    main_input_name = "pixel_values"

    def _see(self, options: Options, pixels: Tensor, interpolate: bool) -> tuple[Tensor, dict[str, Any]]:
        """Return the encoded images (B, S, D), and the fields of a result about them."""
        vision: Any = self.vision_model  # type: ignore[attr-defined]
        with options.capture(vision) as captured:
            encoded = vision(pixels, interpolate_pos_encoding=interpolate).last_hidden_state
        states = {"hidden_states": captured.hidden_states(), "attentions": captured.attentions()}
        return encoded, {"image_embeds": encoded, "last_hidden_state": encoded, **states}

    def _decode(self, ids: Tensor, sources: Sources, mask: Tensor | None) -> Tensor:
        """Return the head's input (B, T, D); padding, at the end, sees the text before it only."""
        check_right_padding(self, mask)
        if mask is None:
            return self.decode(ids, sources)  # type: ignore[attr-defined]
        length = ids.shape[1]
        before = ones((length, length), dtype=dtypes.bool, device=ids.device).tril()
        decoder: Any = self.text_decoder.bert  # type: ignore[attr-defined]
        return decoder(ids, sources, None, key_mask(mask) & before, is_causal=False)

    def _loss(self, logits_BTV: Tensor, labels_BT: Tensor) -> Tensor:
        """Return the loss of the token after each position; -100 does not count."""
        smoothing = float(self.config.text_config.label_smoothing)
        rows, targets = logits_BTV[:, :-1].flatten(0, 1).float(), labels_BT[:, 1:].flatten()
        return F.cross_entropy(rows, targets, label_smoothing=smoothing)

    def _write(self, encoded: Tensor, ids: Tensor, mask: Tensor | None, options: dict[str, Any]) -> Any:
        """Continue texts about encoded sources."""
        text = self.config.text_config
        writer = TextWriter(self, self.sources_of(encoded))  # type: ignore[attr-defined]
        ends = {"eos_token_id": text.sep_token_id, "pad_token_id": text.pad_token_id}
        if mask is not None and not np.asarray(to_host(mask.array)).all():
            raise ArgumentError("generate: prompts with padding", hint="pass prompts of one length")
        return writer.generate(input_ids=ids, **ends | options)


class CaptionForward(BlipForward):
    """Writes captions of images."""

    def forward(
        self,
        pixel_values: Tensor,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
        interpolate_pos_encoding: bool = False,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
        **kwargs: Any,
    ) -> Any:
        """Return logits (B, T, V) of the next token of captions, and with labels the loss.

        Args:
            pixel_values: (B, C, Y, X).
            input_ids, attention_mask: (B, T), of captions, padded at the end only.
            labels: (B, T), the captions themselves; -100 does not count.
            interpolate_pos_encoding: take images of any size.
            output_attentions, output_hidden_states, return_dict: None means as the config says; of the images.

        Raises:  ArgumentError, ShapeError
        """
        options = Options(self, output_hidden_states, output_attentions, return_dict, kwargs)
        encoded, states = self._see(options, pixel_values, interpolate_pos_encoding)
        hidden = self._decode(input_ids, self.sources_of(encoded), attention_mask)  # type: ignore[attr-defined]
        logits = self.logits(hidden)  # type: ignore[attr-defined]
        loss = None if labels is None else self._loss(logits, labels)
        return options.result(BlipForConditionalGenerationModelOutput, loss=loss, logits=logits, **states)

    def generate(
        self,
        pixel_values: Tensor,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        interpolate_pos_encoding: bool = False,
        **generate_kwargs: Any,
    ) -> Any:
        """Write captions of images, behind their beginnings.

        Args:
            pixel_values: (B, C, Y, X).
            input_ids, attention_mask: (B, T), the beginnings with special tokens, of one length; None means none.
            interpolate_pos_encoding: take images of any size.
            generate_kwargs: as `GenerationMixin.generate`.

        Returns: ids (B, T) with the beginnings
        Raises:  ArgumentError, ShapeError
        """
        with no_grad():
            vision: Any = self.vision_model  # type: ignore[attr-defined]
            encoded = vision(pixel_values, interpolate_pos_encoding=interpolate_pos_encoding).last_hidden_state
            batch, start = pixel_values.shape[0], self.config.text_config.bos_token_id
            first = full((batch, 1), start, dtype=dtypes.int64, device=pixel_values.device)
            ids = first if input_ids is None else input_ids[:, :-1].clone()
            ids[:, 0] = start
            mask = None if attention_mask is None else attention_mask[:, :-1]
            return self._write(encoded, ids, mask, generate_kwargs)


class AnswerForward(BlipForward):
    """Answers questions about images."""

    main_input_name = "input_ids"

    def forward(
        self,
        input_ids: Tensor,
        pixel_values: Tensor,
        decoder_input_ids: Tensor | None = None,
        decoder_attention_mask: Tensor | None = None,
        attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
        interpolate_pos_encoding: bool = False,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
        **kwargs: Any,
    ) -> Any:
        """Return the encoded images (B, S, D), and with labels the loss of the answers.

        Args:
            input_ids, attention_mask: (B, T), of questions.
            pixel_values: (B, C, Y, X).
            decoder_input_ids, decoder_attention_mask: of answers, padded at the end only; None means the labels.
            labels: the answers themselves; -100 does not count.
            interpolate_pos_encoding: take images of any size.
            output_attentions, output_hidden_states, return_dict: None means as the config says; of the images.

        Raises:  ArgumentError without answers; ShapeError
        """
        options = Options(self, output_hidden_states, output_attentions, return_dict, kwargs)
        answers = labels if decoder_input_ids is None else decoder_input_ids
        if answers is None:
            raise ArgumentError(
                f"{type(self).__name__}: neither decoder_input_ids nor labels", hint="pass them, or call generate"
            )
        encoded, states = self._see(options, pixel_values, interpolate_pos_encoding)
        question = self.read(encoded, input_ids, attention_mask)  # type: ignore[attr-defined]
        loss = None
        if labels is not None:
            hidden = self._decode(answers, self.sources_of(question), decoder_attention_mask)  # type: ignore[attr-defined]
            loss = self._loss(self.logits(hidden), labels)  # type: ignore[attr-defined]
        return options.result(BlipTextVisionModelOutput, loss=loss, **states)

    def generate(
        self,
        input_ids: Tensor,
        pixel_values: Tensor,
        attention_mask: Tensor | None = None,
        interpolate_pos_encoding: bool = False,
        **generate_kwargs: Any,
    ) -> Any:
        """Answer questions about images.

        Args:
            input_ids, attention_mask: (B, T), of questions.
            pixel_values: (B, C, Y, X).
            interpolate_pos_encoding: take images of any size.
            generate_kwargs: as `GenerationMixin.generate`.

        Returns: ids (B, T), the answers behind the token that begins them
        Raises:  ArgumentError, ShapeError
        """
        with no_grad():
            vision: Any = self.vision_model  # type: ignore[attr-defined]
            encoded = vision(pixel_values, interpolate_pos_encoding=interpolate_pos_encoding).last_hidden_state
            question = self.read(encoded, input_ids, attention_mask)  # type: ignore[attr-defined]
            start, device = self.config.text_config.bos_token_id, question.device
            first = full((question.shape[0], 1), start, dtype=dtypes.int64, device=device)
            return self._write(question, first, None, generate_kwargs)
