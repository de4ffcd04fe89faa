"""`forward` of BART and T5 with heads that do not write, and of Whisper's classifier, under transformers' names.

Letters: B batch, T positions of the decoder, S positions of the source, D width, N labels, M mel bins.
"""

from __future__ import annotations

from typing import Any

from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError
from tallow.transformers import losses
from tallow.transformers.forward_common import Options
from tallow.transformers.forward_encoders import encode_t5
from tallow.transformers.forward_seq2seq import Decoder, Seq2SeqForward, as_encoded
from tallow.transformers.modeling_outputs import (
    BaseModelOutput,
    Seq2SeqQuestionAnsweringModelOutput,
    Seq2SeqSequenceClassifierOutput,
    SequenceClassifierOutput,
    TokenClassifierOutput,
)


class PairHeadForward(Seq2SeqForward):
    """The base of heads over an encoder and a decoder, which reads the source unless it gets a text of its own."""

    copies_source = True

    def _read(
        self, options: Options, ids: Tensor | None, mask: Tensor | None, others: dict[str, Any]
    ) -> tuple[Any, dict[str, Any]]:
        """Run both and the head.  Returns its result, and the fields of a result"""
        encoded = others.pop("encoder_outputs")
        embeds = others.pop("inputs_embeds")
        decoder = self._begin(ids, Decoder(past=None, **others), None)
        encoded = self._encode(options, ids, mask, embeds) if encoded is None else as_encoded(encoded)
        hidden, states = self._write(options, encoded, mask, decoder)
        return self.head(hidden, ids), states  # type: ignore[attr-defined]


class PairTextsForward(PairHeadForward):
    """Labels whole texts."""

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        decoder_attention_mask: Tensor | None = None,
        encoder_outputs: Any = None,
        inputs_embeds: Tensor | None = None,
        decoder_inputs_embeds: Tensor | None = None,
        labels: Tensor | None = None,
        use_cache: bool | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
        **kwargs: Any,
    ) -> Any:
        """Return logits (B, N) of texts, and with labels the loss.

        Args:
            input_ids, attention_mask: (B, S). Each text ends with the same number of end-of-sequence tokens.
            decoder_input_ids: (B, S); None means the texts, after the start token.
            labels: (B,), or (B, N) floats for several labels.
            others: as of the model that writes

        Raises:  ArgumentError
        """
        options = Options(self, output_hidden_states, output_attentions, return_dict, kwargs)
        if input_ids is None:
            raise ArgumentError(
                f"{type(self).__name__}: no input_ids, which show where a text ends", hint="pass input_ids"
            )
        others = {"encoder_outputs": encoder_outputs, "inputs_embeds": inputs_embeds, "ids": decoder_input_ids}
        others |= {"mask": decoder_attention_mask, "embeds": decoder_inputs_embeds}
        others |= {"use_cache": use_cache if labels is None else False}
        logits, states = self._read(options, input_ids, attention_mask, others)
        loss = None if labels is None else losses.of_texts(logits, labels, self.config)
        return options.result(Seq2SeqSequenceClassifierOutput, loss=loss, logits=logits, **states)


class PairSpansForward(PairHeadForward):
    """Finds an answer in a text."""

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        decoder_attention_mask: Tensor | None = None,
        encoder_outputs: Any = None,
        start_positions: Tensor | None = None,
        end_positions: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        decoder_inputs_embeds: Tensor | None = None,
        use_cache: bool | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
        **kwargs: Any,
    ) -> Any:
        """Return the logits (B, T) of starts and ends, and with positions (B,) of both the loss.

        Args:    as of the model that writes; decoder_input_ids: None means the texts, after the start token
        Raises:  ArgumentError
        """
        options = Options(self, output_hidden_states, output_attentions, return_dict, kwargs)
        trains = start_positions is not None and end_positions is not None
        others = {"encoder_outputs": encoder_outputs, "inputs_embeds": inputs_embeds, "ids": decoder_input_ids}
        others |= {"mask": decoder_attention_mask, "embeds": decoder_inputs_embeds}
        others |= {"use_cache": False if trains else use_cache}
        (start, end), states = self._read(options, input_ids, attention_mask, others)
        loss = None
        if start_positions is not None and end_positions is not None:
            loss = losses.of_spans(start, end, start_positions, end_positions)
        return options.result(
            Seq2SeqQuestionAnsweringModelOutput, loss=loss, start_logits=start, end_logits=end, **states
        )


class T5TokensForward:
    """Labels tokens by T5's encoder."""

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        labels: Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
        **kwargs: Any,
    ) -> Any:
        """Return logits (B, S, N), and with labels (B, S) the loss. Arguments as of other encoders."""
        model: Any = self
        options = Options(model, output_hidden_states, output_attentions, return_dict, kwargs)
        done = encode_t5(model, model.transformer, options, input_ids, attention_mask, inputs_embeds)
        logits = model.head(done.result)
        loss = None if labels is None else losses.cross_entropy(logits, labels)
        return options.result(TokenClassifierOutput, loss=loss, logits=logits, **done.states)


class SoundClassifierForward:
    """Labels sounds by Whisper's encoder."""

    config: Any
    main_input_name = "input_features"

    def forward(
        self,
        input_features: Tensor | None = None,
        encoder_outputs: Any = None,
        labels: Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
        **kwargs: Any,
    ) -> Any:
        """Return logits (B, N), and with labels (B,) the loss.

        Args:
            input_features: (B, M, 2 S), the spectrograms.
            encoder_outputs: of an earlier call, in place of input_features.
            output_attentions, output_hidden_states, return_dict: None means as the config says.

        Raises:  ArgumentError, ShapeError
        """
        model: Any = self
        summed = self.config.use_weighted_layer_sum
        options = Options(model, summed or output_hidden_states, output_attentions, return_dict, kwargs)
        if encoder_outputs is None:
            if input_features is None:
                raise ArgumentError(f"{type(self).__name__}: neither input_features nor encoder_outputs")
            with options.capture(model.encoder) as captured:
                hidden = model.encoder(input_features)
            encoded = BaseModelOutput(hidden, captured.hidden_states(hidden), captured.attentions())
        else:
            encoded = as_encoded(encoder_outputs)
        logits = model.head(encoded.hidden_states if summed else [encoded.last_hidden_state])
        loss = None if labels is None else losses.cross_entropy(logits, labels)
        return options.result(
            SequenceClassifierOutput,
            loss=loss,
            logits=logits,
            hidden_states=encoded.hidden_states,
            attentions=encoded.attentions,
        )

    def freeze_encoder(self) -> None:
        """Train only the head."""
        self.encoder.requires_grad_(False)  # type: ignore[attr-defined]
