"""`forward` of encoders of waveforms, under transformers' names.

Letters: B batch, N samples, T frames, D width, V vocabulary, L labels.
"""

from __future__ import annotations

from typing import Any

from tallow.core.creation import ones
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError
from tallow.models.speech.speech_heads import SummedHead
from tallow.transformers import losses
from tallow.transformers.capture import Captured
from tallow.transformers.forward_common import Options
from tallow.transformers.forward_encoders import Encoded
from tallow.transformers.modeling_outputs import (
    BaseModelOutput,
    CausalLMOutput,
    SequenceClassifierOutput,
    TokenClassifierOutput,
    Wav2Vec2BaseModelOutput,
    XVectorOutput,
)


class SpeechForward:
    """The base of encoders of waveforms."""

    config: Any
    base: Any
    main_input_name = "input_values"

    def _hear(self, options: Options, sound: Tensor | None, mask: Tensor | None) -> Encoded:
        """Run the model of `tallow.models`."""
        if sound is None:
            raise ArgumentError(f"{type(self).__name__}: no input_values", hint="pass the samples of sounds, (B, N)")
        options.hidden |= isinstance(self, SummedHead) and self.config.use_weighted_layer_sum
        with options.capture(self.base.encoder.layers) as captured:
            result = self.core_forward(sound, mask)  # type: ignore[attr-defined]
        return Encoded(result, captured.hidden_states(), self._weights(captured))

    def _weights(self, captured: Captured) -> tuple[Tensor, ...] | None:
        """Return the attention weights of each layer; of WavLM their mean over heads, as in transformers."""
        weights = captured.attentions()
        if weights is None or self.config.model_type != "wavlm":
            return weights
        return tuple(each.mean(1, keepdim=True).expand(-1, each.shape[1], -1, -1) for each in weights)

    def _frames(self, sound: Tensor, mask: Tensor | None) -> Tensor:
        """Return the frames of each sound, (B,)."""
        samples = (ones(tuple(sound.shape), device=sound.device) if mask is None else mask).sum(-1).long()
        frames: Tensor = self.config.frames_of(samples)
        return frames


class SpeechModelForward(SpeechForward):
    """An encoder of waveforms without a head."""

    def forward(
        self,
        input_values: Tensor | None = None,
        attention_mask: Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
        **kwargs: Any,
    ) -> Any:
        """Return the hidden states (B, T, D) of sounds.

        Args:
            input_values: (B, N), samples at the rate of the model.
            attention_mask: (B, N), 1 for sound, 0 for padding.
            output_attentions, output_hidden_states, return_dict: None means as the config says.

        Raises:  ArgumentError, ShapeError
        """
        options = Options(self, output_hidden_states, output_attentions, return_dict, kwargs)
        done = self._hear(options, input_values, attention_mask)
        return self._result(options, done)

    def _result(self, options: Options, done: Encoded) -> Any:
        hidden, features = done.result
        return options.result(
            Wav2Vec2BaseModelOutput, last_hidden_state=hidden, extract_features=features, **done.states
        )


class PlainSpeechModelForward(SpeechModelForward):
    """An encoder of waveforms whose result has no frames of convolutions."""

    def _result(self, options: Options, done: Encoded) -> Any:
        return options.result(BaseModelOutput, last_hidden_state=done.result.last_hidden_state, **done.states)


class LettersForward(SpeechForward):
    """Writes what was said."""

    def forward(
        self,
        input_values: Tensor | None = None,
        attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
        **kwargs: Any,
    ) -> Any:
        """Return logits (B, T, V) of letters, and with labels (B, letters), padded with -100, the loss.

        Args:    others as without a head
        Raises:  ArgumentError, ShapeError
        """
        options = Options(self, output_hidden_states, output_attentions, return_dict, kwargs)
        done = self._hear(options, input_values, attention_mask)
        loss = None
        if labels is not None:
            assert input_values is not None
            loss = losses.of_letters(done.result, labels, self._frames(input_values, attention_mask), self.config)
        return options.result(CausalLMOutput, loss=loss, logits=done.result, **done.states)


class SoundLabelsForward(SpeechForward):
    """Labels sounds."""

    def forward(
        self,
        input_values: Tensor | None = None,
        attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
        **kwargs: Any,
    ) -> Any:
        """Return logits (B, L) of sounds, and with labels (B,) the loss.

        Args:    others as without a head
        Raises:  ArgumentError, ShapeError
        """
        options = Options(self, output_hidden_states, output_attentions, return_dict, kwargs)
        done = self._hear(options, input_values, attention_mask)
        loss = None if labels is None else losses.cross_entropy(done.result, labels)
        return options.result(SequenceClassifierOutput, loss=loss, logits=done.result, **done.states)


class FrameLabelsForward(SpeechForward):
    """Labels frames."""

    def forward(
        self,
        input_values: Tensor | None = None,
        attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
        **kwargs: Any,
    ) -> Any:
        """Return logits (B, T, L) of frames, and with labels (B, T, L), 1 for the right one, the loss.

        Args:    others as without a head
        Raises:  ArgumentError, ShapeError
        """
        options = Options(self, output_hidden_states, output_attentions, return_dict, kwargs)
        done = self._hear(options, input_values, attention_mask)
        loss = None if labels is None else losses.cross_entropy(done.result, labels.argmax(-1))
        return options.result(TokenClassifierOutput, loss=loss, logits=done.result, **done.states)


class SpeakersForward(SpeechForward):
    """Returns vectors of speakers."""

    def forward(
        self,
        input_values: Tensor | None = None,
        attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
        **kwargs: Any,
    ) -> Any:
        """Return `embeddings`, a vector for the speaker of each sound, and with labels (B,) the loss.

        Args:    others as without a head
        Raises:  ArgumentError, ShapeError
        """
        options = Options(self, output_hidden_states, output_attentions, return_dict, kwargs)
        done = self._hear(options, input_values, attention_mask)
        logits, vectors = done.result
        loss = None if labels is None else self.objective(logits, labels)  # type: ignore[attr-defined]
        return options.result(XVectorOutput, loss=loss, logits=logits, embeddings=vectors, **done.states)
