"""Whisper's encoder with a head that labels sounds.

Letters: B batch, L hidden states, S positions of the sound, D width, M mel bins, N labels.

Source:  names as in transformers' `modeling_whisper.py`
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tallow.core.creation import full
from tallow.core.tensor import Tensor
from tallow.models.config import labels_of
from tallow.models.layer_states import recorded, weighted_sum
from tallow.models.pretrained import PretrainedModel
from tallow.models.whisper.model import WhisperConfig, WhisperEncoder
from tallow.nn.linear import Linear
from tallow.nn.parameter import Parameter


@dataclass(frozen=True, kw_only=True)
class WhisperClassifierConfig(WhisperConfig):
    """The sizes of a classifier of sounds; as WhisperConfig.

    Attributes:
        labels: the names of the labels, in the order of the logits; from `id2label`.
        classifier_proj_size: the width before the logits.
        use_weighted_layer_sum: read a weighted sum of all hidden states, in place of the last.
    """

    labels: tuple[str, ...] = ("LABEL_0", "LABEL_1")
    classifier_proj_size: int = 256
    use_weighted_layer_sum: bool = False

    @classmethod
    def prepare(cls, entries: dict[str, Any]) -> None:
        super().prepare(entries)
        labels_of(entries)


class WhisperForAudioClassification(PretrainedModel):
    """Labels sounds: logits (B, N), in the order of `config.labels`.

    Args:
        config: the sizes; those of a decoder have no effect.
        device, dtype: of the parameters; on device "meta" they take no memory, for `load_state_dict(assign=True)`.

    Example:
        model = WhisperForAudioClassification.from_pretrained("sanchit-gandhi/whisper-medium-fleurs-lang-id")
        model(spectrograms).argmax(-1)
    """

    config_class = WhisperClassifierConfig
    base_model_prefix = "model"

    def __init__(self, config: WhisperClassifierConfig, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config)
        self.encoder = WhisperEncoder(config, device, dtype)
        if config.use_weighted_layer_sum:
            count = config.encoder_layers + 1
            self.layer_weights = Parameter(full((count,), 1 / count, device=device, dtype=dtype))
        self.projector = Linear(config.d_model, config.classifier_proj_size, device=device, dtype=dtype)
        self.classifier = Linear(config.classifier_proj_size, len(config.labels), device=device, dtype=dtype)
        self.reset_parameters()

    def forward(self, mel_BMT: Tensor) -> Tensor:
        """Return logits (B, N) of spectrograms.

        Shapes:  (B, M, 2 S) -> (B, N)
        Raises:  ShapeError
        """
        with recorded(list(self.encoder.layers) if self.config.use_weighted_layer_sum else []) as states:
            last_BSD = self.encoder(mel_BMT)
        return self.head([*states[:-1], last_BSD])

    def head(self, states: Sequence[Tensor]) -> Tensor:
        """Return logits (B, N) of the hidden states (B, S, D): the input of each layer, and the last."""
        hidden_BSD = states[-1]
        if self.config.use_weighted_layer_sum:
            hidden_BSD = weighted_sum(list(states), self.layer_weights)
        return self.classifier(self.projector(hidden_BSD).mean(1))

    def reset_parameters(self) -> None:
        """As PretrainedModel, and as the encoder's."""
        super().reset_parameters()
        self.encoder.reset_parameters(self.config.initializer_range)

    def is_superfluous(self, name: str) -> bool:
        return name.startswith(("decoder.", "proj_out."))
