"""The heads of wav2vec2, HuBERT and WavLM: letters, labels of sounds and of frames, and vectors of speakers.

Letters: B batch, N samples, T frames, D width, V vocabulary, L labels, E width of a speaker's vector.

Source:  names as in transformers' `modeling_wav2vec2.py`
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

from tallow.core.apply import apply
from tallow.core.creation import full
from tallow.core.tensor import Tensor
from tallow.errors import ShapeError
from tallow.models.layer_states import recorded, weighted_sum
from tallow.models.speech.speech_encoder import SpeechModel, SpeechPretrainedModel, pooled
from tallow.nn import functional as F
from tallow.nn import init
from tallow.nn.container import ModuleList
from tallow.nn.dropout import Dropout
from tallow.nn.linear import Linear
from tallow.nn.module import Module
from tallow.nn.parameter import Parameter, empty_parameter
from tallow.ops.joining import cat, stack


class SpeechHead(SpeechPretrainedModel):
    """The base of models with a head.

    Attributes:
        model_class: the model without a head.
    """

    model_class: ClassVar[type[SpeechModel]]

    def __init__(self, config: Any, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config)
        self.add_module(self.base_model_prefix, self.model_class(config, device, dtype))
        self.add_head(config, {"device": device, "dtype": dtype})
        self.reset_parameters()

    def add_head(self, config: Any, factory: dict[str, Any]) -> None:
        """Add the modules of the head."""
        raise NotImplementedError

    def is_superfluous(self, name: str) -> bool:
        return super().is_superfluous(name) and name not in self.state_dict(keep_vars=True)


class SpeechForCTC(SpeechHead):
    """Writes what was said: logits (B, T, V) of a letter, or of none, for each frame.

    Args:    as SpeechModel
    Source:  Graves et al. 2006, "Connectionist temporal classification"
    """

    def add_head(self, config: Any, factory: dict[str, Any]) -> None:
        self.dropout = Dropout(config.final_dropout)
        self.lm_head = Linear(config.hidden_size, config.vocab_size, **factory)

    def forward(self, input_values: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """Return logits (B, T, V).  Args, raises: as SpeechModel.forward"""
        return self.lm_head(self.dropout(self.base(input_values, attention_mask).last_hidden_state))


class SummedHead(SpeechHead):
    """The base of heads that read the last hidden states, or a weighted sum of all, as the config says."""

    def add_head(self, config: Any, factory: dict[str, Any]) -> None:
        if config.use_weighted_layer_sum:
            count = config.num_hidden_layers + 1
            self.layer_weights = Parameter(full((count,), 1 / count, **factory))

    def states(self, input_values: Tensor, attention_mask: Tensor | None) -> Tensor:
        """Return the hidden states (B, T, D) that the head reads."""
        is_sum = self.config.use_weighted_layer_sum
        with recorded(list(self.base.encoder.layers) if is_sum else []) as found:
            last_BTD = self.base(input_values, attention_mask).last_hidden_state
        return weighted_sum(found, self.layer_weights) if is_sum else last_BTD


class SpeechForSequenceClassification(SummedHead):
    """Labels sounds: logits (B, L), in the order of `config.labels`.  Args: as SpeechModel"""

    def add_head(self, config: Any, factory: dict[str, Any]) -> None:
        super().add_head(config, factory)
        self.projector = Linear(config.hidden_size, config.classifier_proj_size, **factory)
        self.classifier = Linear(config.classifier_proj_size, len(config.labels), **factory)

    def forward(self, input_values: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """Return logits (B, L).  Args, raises: as SpeechModel.forward"""
        x_BTD = self.projector(self.states(input_values, attention_mask))
        return self.classifier(pooled(x_BTD, self.frame_mask(attention_mask, x_BTD.shape[1])))


class SpeechForAudioFrameClassification(SummedHead):
    """Labels frames: logits (B, T, L), in the order of `config.labels`.  Args: as SpeechModel"""

    def add_head(self, config: Any, factory: dict[str, Any]) -> None:
        super().add_head(config, factory)
        self.classifier = Linear(config.hidden_size, len(config.labels), **factory)

    def forward(self, input_values: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """Return logits (B, T, L).  Args, raises: as SpeechModel.forward"""
        return self.classifier(self.states(input_values, attention_mask))


class TimeDelayLayer(Module):
    """A linear map of frames at fixed distances, then relu.

    Source:  Waibel et al. 1989, "Phoneme recognition using time-delay neural networks"
    """

    def __init__(self, config: Any, index: int, factory: dict[str, Any]) -> None:
        super().__init__()
        before, width = config.tdnn_dim[max(index - 1, 0)], config.tdnn_dim[index]
        self.kernel_size, self.dilation = config.tdnn_kernel[index], config.tdnn_dilation[index]
        self.kernel = Linear(before * self.kernel_size, width, **factory)

    def forward(self, x_BTD: Tensor) -> Tensor:
        length = x_BTD.shape[1] - (self.kernel_size - 1) * self.dilation
        if length < 1:
            raise ShapeError(f"a sound of {x_BTD.shape[1]} frames is too short for a speaker's vector")
        starts = range(0, self.kernel_size * self.dilation, self.dilation)
        return F.relu(self.kernel(apply(cat, [x_BTD[:, start : start + length] for start in starts], -1)))


class SpeakerLoss(Module):
    """The directions of the speakers in training, for the loss with a margin."""

    SCALE, MARGIN = 30.0, 0.4

    def __init__(self, config: Any, factory: dict[str, Any]) -> None:
        super().__init__()
        self.weight = empty_parameter(config.xvector_output_dim, len(config.labels), **factory)
        init.normal_(self.weight)

    def forward(self, vectors_BE: Tensor, labels_B: Tensor) -> Tensor:
        cosines_BL = F.normalize(vectors_BE, dim=1) @ F.normalize(self.weight, dim=0)
        own_BL = F.one_hot(labels_B.flatten(), cosines_BL.shape[1])
        return F.cross_entropy(self.SCALE * (cosines_BL - self.MARGIN * own_BL), labels_B.flatten())


class SpeakerOutput(NamedTuple):
    """The output of a model of speakers.

    Shapes:  both (B, E)
    """

    logits: Tensor
    embeddings: Tensor


class SpeechForXVector(SummedHead):
    """Returns a vector for the speaker of each sound: near ones are of one speaker.

    Args:    as SpeechModel
    Source:  Snyder et al. 2018, "X-vectors: robust DNN embeddings for speaker recognition"
    """

    def add_head(self, config: Any, factory: dict[str, Any]) -> None:
        super().add_head(config, factory)
        width = config.xvector_output_dim
        self.projector = Linear(config.hidden_size, config.tdnn_dim[0], **factory)
        self.tdnn = ModuleList(TimeDelayLayer(config, index, factory) for index in range(len(config.tdnn_dim)))
        self.feature_extractor = Linear(2 * config.tdnn_dim[-1], width, **factory)
        self.classifier = Linear(width, width, **factory)
        self.objective = SpeakerLoss(config, factory)

    def forward(self, input_values: Tensor, attention_mask: Tensor | None = None) -> SpeakerOutput:
        """Return logits and vectors.  Args, raises: as SpeechModel.forward; ShapeError for sounds of few frames"""
        x_BTD = self.projector(self.states(input_values, attention_mask))
        for layer in self.tdnn:
            x_BTD = layer(x_BTD)
        vectors_BE = self.feature_extractor(self.statistics(x_BTD, attention_mask))
        return SpeakerOutput(self.classifier(vectors_BE), vectors_BE)

    def statistics(self, x_BTD: Tensor, attention_mask: Tensor | None) -> Tensor:
        """Return the means and deviations (B, 2 D) of the frames of each sound."""
        if attention_mask is None:
            return apply(cat, (x_BTD.mean(1), x_BTD.std(1)), -1)
        config, found = self.config, []
        for row_TD, samples in zip(x_BTD, attention_mask.sum(-1).tolist(), strict=True):
            frames = config.frames_of(int(samples)) - sum(config.tdnn_kernel) + len(config.tdnn_kernel)
            found.append(apply(cat, (row_TD[:frames].mean(0), row_TD[:frames].std(0)), -1))
        return apply(stack, found)
