"""`forward` of decoders, with and without heads, under transformers' names.

Letters: B batch, T positions, S positions with those in the cache, D width, V vocabulary, N labels.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tallow import models
from tallow.core.creation import arange
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError
from tallow.models.architectures import ARCHITECTURES
from tallow.models.causal_lm import CausalLM, kv_dtype
from tallow.nn.cache import KVCache
from tallow.tape.modes import mode
from tallow.transformers import losses
from tallow.transformers.cache_utils import Cache, DynamicCache
from tallow.transformers.decoder_masks import (
    RecordedTexts,
    VisibleTexts,
    has_padding_after_text,
    left_padding,
    seen_by,
    texts_of,
)
from tallow.transformers.forward_common import (
    Options,
    check_texts,
    continued,
    embeddings,
    one_input,
    placeholder_ids,
    positions,
)
from tallow.transformers.forward_encoders import Encoded, first_tensor
from tallow.transformers.modeling_outputs import (
    BaseModelOutputWithPast,
    CausalLMOutputWithPast,
    MaskedLMOutput,
    MoeCausalLMOutputWithPast,
    MoeModelOutputWithPast,
    QuestionAnsweringModelOutput,
    SequenceClassifierOutputWithPast,
    TokenClassifierOutput,
)


class Inputs(NamedTuple):
    """The arguments of `forward` about the texts."""

    ids: Tensor | None
    mask: Tensor | None
    positions: Tensor | None
    past: Any
    embeds: Tensor | None
    use_cache: bool | None


# The models whose hidden states are the outputs of the layers and of the norm, without the embeddings.
OUTPUTS_OF_LAYERS = ("mamba", "mamba2")


class DecoderForward:
    """The base of the models of a decoder."""

    config: Any
    base_model_prefix: str

    def _read(self, inputs: Inputs, options: Options) -> tuple[Encoded, Cache | None]:
        """Run the model of `tallow.models`; its result, or for a language model the head's input."""
        one_input(self, inputs.ids, inputs.embeds)
        check_texts(self, inputs.ids, inputs.embeds, inputs.mask, cached=inputs.past is not None, whole=True)
        base: Any = getattr(self, self.base_model_prefix, self)
        ids = inputs.ids
        if ids is None:
            assert inputs.embeds is not None
            ids = placeholder_ids(inputs.embeds, getattr(self.config, "pad_token_id", None))
        use_cache: bool = self.config.use_cache if inputs.use_cache is None else inputs.use_cache
        is_alone = inputs.past is None
        seen = seen_by(self, ids, inputs.mask, inputs.positions, is_alone=is_alone, use_cache=use_cache)
        if seen is None:
            past, memory = self._memory(inputs, ids)
        else:
            past, memory, inputs = None, VisibleTexts(seen, ids.device), inputs._replace(mask=None)
        last: list[Tensor] = []
        with ExitStack() as stack:
            stack.enter_context(embeddings(self.get_input_embeddings(), inputs.embeds))  # type: ignore[attr-defined]
            table = getattr(base, "wpe", None)
            places = self._positions(inputs, ids, past, table is not None)
            if table is None and past is not None:
                stack.enter_context(continued(places, self, past, inputs.mask))
            else:
                stack.enter_context(positions(table, places, self, inputs.mask))
            captured = stack.enter_context(options.capture(base))
            note = base.register_forward_hook(lambda _, __, output: last.append(first_tensor(output)))
            if base is self:
                note.remove()
            else:
                stack.callback(note.remove)
            result = self._run(ids, inputs.mask, memory)
        final = last[0] if last else first_tensor(result)
        hidden = captured.hidden_states(final)
        if hidden and captured.last is not None and self.config.model_type in OUTPUTS_OF_LAYERS:
            hidden = (*hidden[1:-1], captured.last, final)
        return Encoded(result, hidden, captured.attentions()), past

    def _run(self, ids: Tensor, mask: Tensor | None, memory: KVCache | None) -> Any:
        if memory is None:
            return self.core_forward(ids, mask)  # type: ignore[attr-defined]
        base: Any = getattr(self, self.base_model_prefix)
        vars(base)["forward"] = partial(type(base).forward, base, cache=memory)
        try:
            return self.core_forward(ids)  # type: ignore[attr-defined]
        finally:
            del vars(base)["forward"]

    def _memory(self, inputs: Inputs, ids: Tensor) -> tuple[Cache | None, KVCache | None]:
        """Return the cache to return, and its memory."""
        raise NotImplementedError

    def _positions(self, inputs: Inputs, ids: Tensor, past: Cache | None, learned: bool) -> Tensor | None:
        """Return the positions to count by: those given, or for learned ones as transformers, padding included."""
        if inputs.positions is not None or not learned or inputs.mask is None:
            return inputs.positions
        start = 0 if past is None else past.get_seq_length()
        return arange(start, start + ids.shape[1], device=ids.device)[None]


class CachedForward(DecoderForward):
    """A decoder that returns a cache."""

    def _maker(self) -> Any:
        """Return what makes the memory of a cache."""
        return self

    def _memory(self, inputs: Inputs, ids: Tensor) -> tuple[Cache | None, KVCache | None]:
        wanted = self.config.use_cache if inputs.use_cache is None else inputs.use_cache
        recording = mode.recording and any(p.requires_grad for p in self.parameters())  # type: ignore[attr-defined]
        # Layers with states, and those that read a text again when it is long, write to the memory of the cache.
        writes = self.config.layer_shapes or getattr(self, "unscaled_length", None)
        trains = self.training and not inputs.use_cache  # type: ignore[attr-defined]
        # Padding after texts is computed as transformers does only without a cache, and a loss may count it.
        without = recording and (trains or writes or has_padding_after_text(inputs.mask))
        if inputs.past is None and (not wanted or without or self.config.sees_both_sides):
            return None, None
        past = DynamicCache() if inputs.past is None else inputs.past
        if not isinstance(past, Cache):
            raise ArgumentError(
                f"past_key_values is a {type(past).__name__}", hint="pass a DynamicCache, or what a call returned"
            )
        start = past.get_seq_length()
        padding = None if inputs.mask is None else left_padding(inputs.mask, start, ids.shape[1])
        memory = past.memory_for(self._maker(), ids.shape[0], None if padding is None else padding.tolist())
        held = memory.padding if memory.padding is not None else np.zeros(ids.shape[0], np.int64)
        if padding is not None and inputs.mask is not None and (held != padding).any():
            raise ArgumentError(
                f"attention_mask: padding {padding.tolist()} on the left, and {held.tolist()} in the cache",
                hint="pass the mask of all tokens, those in the cache too, padded on the left",
            )
        return past, RecordedTexts(memory, past) if recording and not writes else memory  # type: ignore[return-value]


class HeadForward(CachedForward):
    """A decoder with a head for labels or answers: it keeps a cache only if `use_cache` or `past_key_values` ask."""

    def _maker(self) -> Any:
        return MemoryOf(getattr(self, self.base_model_prefix))

    def _memory(self, inputs: Inputs, ids: Tensor) -> tuple[Cache | None, KVCache | None]:
        return super()._memory(inputs._replace(use_cache=bool(inputs.use_cache)), ids)


class DecoderModelForward(CachedForward):
    """A decoder without a head."""

    output_class: Any = BaseModelOutputWithPast

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        past_key_values: Any = None,
        inputs_embeds: Tensor | None = None,
        use_cache: bool | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
        **kwargs: Any,
    ) -> Any:
        """Return the hidden states (B, T, D) of texts. Arguments as the language model's, without a cache."""
        options = Options(self, output_hidden_states, output_attentions, return_dict, kwargs)
        inputs = Inputs(input_ids, attention_mask, position_ids, past_key_values, inputs_embeds, use_cache)
        done, past = self._read(inputs, options)
        return options.result(self.output_class, last_hidden_state=done.result, past_key_values=past, **done.states)

    def _run(self, ids: Tensor, mask: Tensor | None, memory: KVCache | None) -> Tensor:
        if memory is None:
            return self.core_forward(ids, mask)  # type: ignore[attr-defined]
        return self.decode(ids, memory)  # type: ignore[attr-defined]

    def _maker(self) -> Any:
        return MemoryOf(self)


class MemoryOf:
    """Makes the memory of a cache for a decoder without a head."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.context_length = model.context_length

    def new_cache(self, *, length: int, batch: int, padding: Any = None, **options: Any) -> KVCache:
        """Return the memory for `length` positions of `batch` texts.  Args: options: of no effect here"""
        core = getattr(self.model, "core_class", type(self.model))
        lm = next(kind for kind in language_models() if kind.model_class is core)
        weight = next(self.model.parameters())
        layers, heads, width = lm.cache_shape.fget(self.model)  # type: ignore[attr-defined]  # reads the config alone
        return KVCache(
            layers,
            batch,
            heads,
            length,
            width,
            padding=padding,
            growing=True,
            dtype=kv_dtype(options.get("dtype"), weight),
            device=weight.device,
            shapes=self.model.config.layer_shapes,
        )


def language_models() -> Iterator[type[CausalLM]]:
    """Yield the language models that are decoders, of `tallow.models`."""
    for name, own in ARCHITECTURES.items():
        if name.endswith(("ForCausalLM", "LMHeadModel")):
            kind = getattr(models, own)
            if issubclass(kind, CausalLM):
                yield kind


class CausalLMForward(CachedForward):
    """A language model."""

    output_class: Any = CausalLMOutputWithPast

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        past_key_values: Any = None,
        inputs_embeds: Tensor | None = None,
        labels: Tensor | None = None,
        use_cache: bool | None = None,
        logits_to_keep: int | Tensor = 0,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
        **kwargs: Any,
    ) -> Any:
        """Return logits (B, T, V) of the next token, and with labels the loss.

        Args:
            input_ids: (B, T); with a cache, the tokens after those in it.
            attention_mask: (B, S), 1 for text, 0 for padding at an end; before a cache is continued, on the left.
            position_ids: (B, T).
            past_key_values: a cache of the tokens before.
            inputs_embeds: (B, T, D), in place of input_ids.
            labels: (B, T), the tokens themselves; -100 does not count.
            use_cache: return a cache; None means as the config says, and not in training while autograd records.
            logits_to_keep: compute only the last logits, or those of these positions; 0 means all.
            output_attentions, output_hidden_states, return_dict: None means as the config says.
            kwargs: `shift_labels` (B, T), the token after each position, in place of those that `labels` has;
                `num_items_in_batch`, which divides the sum of the losses.

        Raises:  ArgumentError
        """
        shifted = kwargs.pop("shift_labels", None)
        options = Options(self, output_hidden_states, output_attentions, return_dict, kwargs)
        inputs = Inputs(input_ids, attention_mask, position_ids, past_key_values, inputs_embeds, use_cache)
        done, past = self._read(inputs, options)
        hidden = done.result
        if isinstance(logits_to_keep, int):
            hidden = hidden[:, -logits_to_keep:] if logits_to_keep else hidden
        else:
            hidden = hidden[:, logits_to_keep]
        logits = self.logits(hidden)  # type: ignore[attr-defined]
        loss = None if labels is None else self._loss(logits, labels, options, shifted)
        return options.result(self.output_class, loss=loss, logits=logits, past_key_values=past, **done.states)

    def _loss(self, logits: Tensor, labels: Tensor, options: Options, shifted: Tensor | None) -> Tensor:
        return losses.next_token(logits, labels, options.count, shifted)

    def _run(self, ids: Tensor, mask: Tensor | None, memory: KVCache | None) -> Tensor:
        if memory is None and mask is not None:
            memory = texts_of(mask)
        return self.hidden(ids, memory)  # type: ignore[attr-defined]


class MoeModelForward(DecoderModelForward):
    """A decoder with experts, without a head."""

    output_class = MoeModelOutputWithPast


class MoeForward(CausalLMForward):
    """A language model with experts."""

    output_class = MoeCausalLMOutputWithPast


class DecoderTextsForward(HeadForward):
    """Labels whole texts by their last token."""

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        past_key_values: Any = None,
        inputs_embeds: Tensor | None = None,
        labels: Tensor | None = None,
        use_cache: bool | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
        **kwargs: Any,
    ) -> Any:
        """Return logits (B, N), and with labels (B,) or (B, N) the loss. Arguments as the language model's."""
        options = Options(self, output_hidden_states, output_attentions, return_dict, kwargs)
        inputs = Inputs(input_ids, attention_mask, position_ids, past_key_values, inputs_embeds, use_cache)
        done, past = self._read(inputs, options)
        loss = None if labels is None else losses.of_texts(done.result, labels, self.config)
        return options.result(
            SequenceClassifierOutputWithPast, loss=loss, logits=done.result, past_key_values=past, **done.states
        )


class DecoderTokensForward(HeadForward):
    """Labels tokens."""

    output_class: Any = TokenClassifierOutput

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        past_key_values: Any = None,
        inputs_embeds: Tensor | None = None,
        labels: Tensor | None = None,
        use_cache: bool | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
        **kwargs: Any,
    ) -> Any:
        """Return logits (B, T, N), and with labels (B, T) the loss. Arguments as the language model's."""
        options = Options(self, output_hidden_states, output_attentions, return_dict, kwargs)
        inputs = Inputs(input_ids, attention_mask, position_ids, past_key_values, inputs_embeds, use_cache)
        done, _ = self._read(inputs, options)
        loss = None if labels is None else losses.cross_entropy(done.result, labels)
        return options.result(self.output_class, loss=loss, logits=done.result, **done.states)


class DecoderMaskedLMForward(DecoderTokensForward):
    """Predicts the tokens behind masks."""

    output_class = MaskedLMOutput


class DecoderSpansForward(HeadForward):
    """Finds an answer in a text."""

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        past_key_values: Any = None,
        inputs_embeds: Tensor | None = None,
        start_positions: Tensor | None = None,
        end_positions: Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
        **kwargs: Any,
    ) -> Any:
        """Return the logits (B, T) of starts and ends, and with positions (B,) of both the loss."""
        options = Options(self, output_hidden_states, output_attentions, return_dict, kwargs)
        inputs = Inputs(input_ids, attention_mask, position_ids, past_key_values, inputs_embeds, None)
        done, _ = self._read(inputs, options)
        start, end = done.result
        loss = None
        if start_positions is not None and end_positions is not None:
            loss = losses.of_spans(start, end, start_positions, end_positions)
        return options.result(
            QuestionAnsweringModelOutput, loss=loss, start_logits=start, end_logits=end, **done.states
        )
