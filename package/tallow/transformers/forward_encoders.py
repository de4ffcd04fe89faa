"""`forward` of encoders of texts, with and without heads, under transformers' names.

Letters: B batch, T positions, D width, V vocabulary, N labels.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any, NamedTuple

import numpy as np

from tallow import devices
from tallow.core.tensor import Tensor, wrap
from tallow.transformers import losses
from tallow.transformers.capture import Captured
from tallow.transformers.decoder_masks import seen_by
from tallow.transformers.forward_common import (
    Options,
    check_texts,
    embeddings,
    one_input,
    placeholder_ids,
    positions,
)
from tallow.transformers.modeling_outputs import (
    AlbertForPreTrainingOutput,
    BaseModelOutput,
    BaseModelOutputWithPastAndCrossAttentions,
    BaseModelOutputWithPooling,
    BaseModelOutputWithPoolingAndCrossAttentions,
    BertForPreTrainingOutput,
    CausalLMOutputWithCrossAttentions,
    MaskedLMOutput,
    MultipleChoiceModelOutput,
    NextSentencePredictorOutput,
    QuestionAnsweringModelOutput,
    SequenceClassifierOutput,
    TokenClassifierOutput,
)


class Encoded(NamedTuple):
    """The result of a model of `tallow.models`, and what its layers computed."""

    result: Any
    hidden_states: tuple[Tensor, ...] | None
    attentions: tuple[Tensor, ...] | None

    @property
    def states(self) -> dict[str, Any]:
        """The fields of a result that all models have."""
        return {"hidden_states": self.hidden_states, "attentions": self.attentions}


def first_tensor(result: Any) -> Tensor:
    """Return the hidden states of a model's result, a tensor or a tuple."""
    return result if isinstance(result, Tensor) else result[0]


def seen_from(model: Any, texts: Any, mask: Tensor) -> Tensor:
    """Return what each position sees (B, 1, T, T), bool, by a mask of four dimensions.

    Args:    texts: ids (B, T), or embeddings (B, T, D)
    Raises:  ArgumentError for another shape, and numbers between 0 and -inf
    """
    ids = texts if texts.ndim == 2 else texts[..., 0]
    seen_BTT = seen_by(model, ids, mask, None, is_alone=True, use_cache=True)
    assert seen_BTT is not None
    return wrap(devices.move(np.ascontiguousarray(seen_BTT[:, None]), mask.device))


class EncoderForward:
    """The base of the models of an encoder."""

    config: Any
    base_model_prefix: str

    def _encode(self, options: Options, ids: Tensor | None, mask: Tensor | None, **others: Any) -> Encoded:
        """Run the model of `tallow.models`.

        Args:    others: token_type_ids, position_ids and inputs_embeds
        """
        segments, places, embeds = (others.get(name) for name in ("token_type_ids", "position_ids", "inputs_embeds"))
        one_input(self, ids, embeds)
        check_texts(self, ids, embeds, mask, whole=True)
        if mask is not None and mask.ndim == 4:
            mask = seen_from(self, ids if ids is not None else embeds, mask)
        base: Any = getattr(self, self.base_model_prefix, self)
        table = base.embeddings
        arguments = [
            ids if embeds is None else placeholder_ids(embeds, getattr(self.config, "pad_token_id", None)),
            mask,
        ]
        if hasattr(table, "token_type_embeddings"):
            arguments.append(segments)
        last: list[Tensor] = []
        with ExitStack() as stack:
            stack.enter_context(embeddings(self.get_input_embeddings(), embeds))  # type: ignore[attr-defined]
            stack.enter_context(positions(getattr(table, "position_embeddings", None), places, self))
            captured: Captured = stack.enter_context(options.capture(base))
            if base is not self and options.hidden:
                note = base.register_forward_hook(lambda _, __, output: last.append(first_tensor(output)))
                stack.callback(note.remove)
            result = self.core_forward(*arguments)  # type: ignore[attr-defined]
        final = last[0] if last else first_tensor(result)
        return Encoded(result, captured.hidden_states(final), captured.attentions())


class EncoderModelForward(EncoderForward):
    """An encoder without a head."""

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
        **kwargs: Any,
    ) -> Any:
        """Return the hidden states (B, T, D) of texts, and one vector for each where the model has a pooler.

        Args:
            input_ids: (B, T).
            attention_mask: (B, T), 1 for text, 0 for padding; or (B, 1, T, T), what each position sees.
            token_type_ids: (B, T), 0 for the first segment and 1 for the second.
            position_ids: (B, T).
            inputs_embeds: (B, T, D), in place of input_ids.
            output_attentions, output_hidden_states, return_dict: None means as the config says.

        Raises:  ArgumentError
        """
        options = Options(self, output_hidden_states, output_attentions, return_dict, kwargs)
        inputs = {"token_type_ids": token_type_ids, "position_ids": position_ids, "inputs_embeds": inputs_embeds}
        done = self._encode(options, input_ids, attention_mask, **inputs)
        if isinstance(done.result, Tensor):
            return options.result(BaseModelOutput, last_hidden_state=done.result, **done.states)
        hidden, pooled = done.result
        could_read = hasattr(self.config, "add_cross_attention")  # another encoder's result
        return options.result(
            BaseModelOutputWithPoolingAndCrossAttentions if could_read else BaseModelOutputWithPooling,
            last_hidden_state=hidden,
            pooler_output=pooled,
            **done.states,
        )


class T5EncoderForward:
    """T5's encoder."""

    config: Any

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
        **kwargs: Any,
    ) -> Any:
        """Return the hidden states (B, T, D) of texts. Arguments as of other encoders."""
        options = Options(self, output_hidden_states, output_attentions, return_dict, kwargs)
        done = encode_t5(self, self, options, input_ids, attention_mask, inputs_embeds)
        return options.result(
            BaseModelOutputWithPastAndCrossAttentions,
            last_hidden_state=done.result,
            **done.states,
        )


def encode_t5(
    model: Any, base: Any, options: Options, ids: Tensor | None, mask: Tensor | None, embeds: Tensor | None
) -> Encoded:
    """Run the encoder of a T5.

    Args:    base: what holds the encoder: the model, or a part of it
    """
    one_input(model, ids, embeds)
    check_texts(model, ids, embeds, mask)
    ids = ids if embeds is None else placeholder_ids(embeds, model.config.pad_token_id)
    with embeddings(model.get_input_embeddings(), embeds), options.capture(base.encoder) as captured:
        hidden = base.encode(ids, mask)
    return Encoded(hidden, captured.hidden_states(hidden), captured.attentions())


class LabelledForward(EncoderForward):
    """The base of encoders with a head and labels."""

    output_class: Any

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        labels: Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
        **kwargs: Any,
    ) -> Any:
        """Return logits, and with labels the loss.

        Args:
            labels: (B, T) for tokens, where -100 does not count; (B,) for texts, or (B, N) floats for several labels.
            others: as the model without a head

        Raises:  ArgumentError
        """
        options = Options(self, output_hidden_states, output_attentions, return_dict, kwargs)
        inputs = {"token_type_ids": token_type_ids, "position_ids": position_ids, "inputs_embeds": inputs_embeds}
        options.mask = attention_mask
        done = self._encode(options, input_ids, attention_mask, **inputs)
        loss = None if labels is None else self._loss(done.result, labels, options)
        return options.result(self.output_class, loss=loss, logits=done.result, **done.states)

    def _loss(self, logits: Tensor, labels: Tensor, options: Options) -> Tensor:
        """Return the mean over the labels of the batch: as in transformers, `num_items_in_batch` does not divide it."""
        return losses.cross_entropy(logits, labels)


class MaskedLMForward(LabelledForward):
    """Predicts the tokens behind masks."""

    output_class = MaskedLMOutput


class CountedMaskedLMForward(MaskedLMForward):
    """ModernBERT, whose loss `num_items_in_batch` divides."""

    def _loss(self, logits: Tensor, labels: Tensor, options: Options) -> Tensor:
        return losses.cross_entropy(logits, labels, options.count)


class EncoderLMForward(LabelledForward):
    """Predicts the token after each position."""

    output_class = CausalLMOutputWithCrossAttentions

    def _loss(self, logits: Tensor, labels: Tensor, options: Options) -> Tensor:
        return losses.next_token(logits, labels, options.count)


class TextClassifierForward(LabelledForward):
    """Labels whole texts."""

    output_class = SequenceClassifierOutput

    def _loss(self, logits: Tensor, labels: Tensor, options: Options) -> Tensor:
        return losses.of_texts(logits, labels, self.config)


class TokenClassifierForward(LabelledForward):
    """Labels tokens."""

    output_class = TokenClassifierOutput


class UnpaddedTokensForward(TokenClassifierForward):
    """XLM-RoBERTa-XL, whose loss leaves padding out, whatever its labels are."""

    def _loss(self, logits: Tensor, labels: Tensor, options: Options) -> Tensor:
        mask = options.mask
        hidden = None if mask is None or mask.ndim != 2 else mask.to(labels.device) != 1
        return losses.cross_entropy(logits, labels if hidden is None else labels.masked_fill(hidden, losses.IGNORED))


class ReplacedTokensForward(LabelledForward):
    """Says which tokens were replaced: ELECTRA's discriminator."""

    output_class = TokenClassifierOutput

    def _loss(self, logits: Tensor, labels: Tensor, options: Options) -> Tensor:
        return losses.of_replaced(logits, labels, options.mask)


class NextSentenceForward(LabelledForward):
    """Says whether one text follows another."""

    output_class = NextSentencePredictorOutput


class MultipleChoiceForward(LabelledForward):
    """Chooses one of several texts."""

    output_class = MultipleChoiceModelOutput

    def _encode(self, options: Options, ids: Tensor | None, mask: Tensor | None, **others: Any) -> Encoded:
        given = ids if ids is not None else others["inputs_embeds"]
        choices = given.shape[1]

        def flat(value: Tensor | None) -> Tensor | None:
            return None if value is None else value.reshape(-1, *value.shape[2:])

        done = super()._encode(options, flat(ids), flat(mask), **{name: flat(value) for name, value in others.items()})
        return done._replace(result=done.result.reshape(-1, choices))


class SpanForward(EncoderForward):
    """Finds an answer in a text."""

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        start_positions: Tensor | None = None,
        end_positions: Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
        **kwargs: Any,
    ) -> Any:
        """Return the logits (B, T) of starts and ends, and with positions (B,) of both the loss.

        Args:    as the model without a head
        Raises:  ArgumentError
        """
        options = Options(self, output_hidden_states, output_attentions, return_dict, kwargs)
        inputs = {"token_type_ids": token_type_ids, "position_ids": position_ids, "inputs_embeds": inputs_embeds}
        done = self._encode(options, input_ids, attention_mask, **inputs)
        start, end = done.result
        loss = None
        if start_positions is not None and end_positions is not None:
            loss = losses.of_spans(start, end, start_positions, end_positions)
        return options.result(
            QuestionAnsweringModelOutput, loss=loss, start_logits=start, end_logits=end, **done.states
        )


class PreTrainingForward(EncoderForward):
    """Both heads of BERT's training."""

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        labels: Tensor | None = None,
        next_sentence_label: Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
        **kwargs: Any,
    ) -> Any:
        """Return logits of tokens (B, T, V) and of whether segments follow (B, 2), and with both labels the loss.

        Args:    as the model without a head
        Raises:  ArgumentError
        """
        options = Options(self, output_hidden_states, output_attentions, return_dict, kwargs)
        inputs = {"token_type_ids": token_type_ids, "position_ids": position_ids, "inputs_embeds": inputs_embeds}
        done = self._encode(options, input_ids, attention_mask, **inputs)
        predicted, follows = done.result
        loss = None
        if labels is not None and next_sentence_label is not None:
            loss = losses.cross_entropy(predicted, labels) + losses.cross_entropy(follows, next_sentence_label)
        return options.result(
            BertForPreTrainingOutput,
            loss=loss,
            prediction_logits=predicted,
            seq_relationship_logits=follows,
            **done.states,
        )


class OrderedPreTrainingForward(EncoderForward):
    """Both heads of ALBERT's training."""

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        labels: Tensor | None = None,
        sentence_order_label: Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
        **kwargs: Any,
    ) -> Any:
        """Return logits of tokens (B, T, V) and of whether segments are in order (B, N), and with both labels the loss.

        Args:    as the model without a head
        Raises:  ArgumentError
        """
        options = Options(self, output_hidden_states, output_attentions, return_dict, kwargs)
        inputs = {"token_type_ids": token_type_ids, "position_ids": position_ids, "inputs_embeds": inputs_embeds}
        done = self._encode(options, input_ids, attention_mask, **inputs)
        predicted, ordered = done.result
        loss = None
        if labels is not None and sentence_order_label is not None:
            loss = losses.cross_entropy(predicted, labels) + losses.cross_entropy(ordered, sentence_order_label)
        return options.result(
            AlbertForPreTrainingOutput, loss=loss, prediction_logits=predicted, sop_logits=ordered, **done.states
        )
