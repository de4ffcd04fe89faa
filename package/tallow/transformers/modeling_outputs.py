"""Results of models: `ModelOutput`, read as an object, a dictionary or a tuple, and its kinds.

Fields have transformers' names, order and shapes: hidden states are (batch, tokens, width), one for the embeddings and
one for each layer; attentions are (batch, heads, queries, keys), one for each layer.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, NoReturn, TypeAlias

from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError

Tensors: TypeAlias = tuple[Tensor, ...]


class ModelOutput(OrderedDict[str, Any]):
    """The base of results: a dataclass whose fields that are not None are also keys, and entries of a tuple.

    `result.logits`, `result["logits"]` and `result[0]` are the same tensor where it is the first field that is not
    None. Keys cannot be removed.
    """

    def __post_init__(self) -> None:
        first, *others = (field.name for field in fields(self))  # type: ignore[arg-type]
        given = {name: value for name in (first, *others) if (value := self.__dict__.get(name)) is not None}
        if given.keys() == {first} and (pairs := _pairs(given[first])) is not None:
            super().__setattr__(first, None)
            super().__delitem__(first)
            given = pairs
        for name, value in given.items():
            self[name] = value

    def __getitem__(self, key: Any) -> Any:
        """Return the value of a key, or of an index or slice of `to_tuple()`."""
        return super().__getitem__(key) if isinstance(key, str) else self.to_tuple()[key]

    def __setitem__(self, key: str, value: Any) -> None:
        super().__setitem__(key, value)
        super().__setattr__(key, value)

    def __setattr__(self, name: str, value: Any) -> None:
        if value is not None and is_dataclass(self) and name in type(self).__dataclass_fields__:
            super().__setitem__(name, value)
        super().__setattr__(name, value)

    def __reduce__(self) -> Any:
        if not is_dataclass(self):
            return super().__reduce__()
        return type(self), tuple(getattr(self, field.name) for field in fields(self))

    def __delitem__(self, key: str) -> NoReturn:
        self._refuse("del", key)

    def setdefault(self, *arguments: Any) -> NoReturn:
        """Raise ArgumentError: keys are the fields."""
        self._refuse("setdefault", *arguments)

    def pop(self, *arguments: Any) -> NoReturn:
        """Raise ArgumentError: keys cannot be removed."""
        self._refuse("pop", *arguments)

    def update(self, *arguments: Any, **entries: Any) -> NoReturn:
        """Raise ArgumentError: assign to the fields."""
        self._refuse("update", *arguments, *entries)

    def _refuse(self, call: str, *arguments: Any) -> NoReturn:
        named = ", ".join(f"{each!r:.40}" for each in arguments)
        raise ArgumentError(
            f"{type(self).__name__}: {call}({named}): the keys of a result are its fields that are not None",
            hint="assign to a field, or change the copy that dict() makes",
        )

    def to_tuple(self) -> tuple[Any, ...]:
        """Return the fields that are not None."""
        return tuple(self.values())


def _pairs(value: Any) -> dict[str, Any] | None:
    """Return the fields that a first argument such as {"logits": ...} or [("logits", ...)] holds, if it is one."""
    if isinstance(value, dict):
        return dict(value)
    if not isinstance(value, list | tuple | Iterator) or not value:
        return None
    entries = list(value)
    if all(isinstance(entry, list | tuple) and len(entry) == 2 and isinstance(entry[0], str) for entry in entries):
        return dict(entries)
    return None


@dataclass
class BaseModelOutput(ModelOutput):
    """The result of a model without a head."""

    last_hidden_state: Tensor | None = None
    hidden_states: Tensors | None = None
    attentions: Tensors | None = None


@dataclass
class BaseModelOutputWithPast(ModelOutput):
    """The result of a decoder without a head; `past_key_values` is its cache."""

    last_hidden_state: Tensor | None = None
    past_key_values: Any = None
    hidden_states: Tensors | None = None
    attentions: Tensors | None = None


@dataclass
class BaseModelOutputWithPooling(ModelOutput):
    """The result of a model without a head, with one vector for each input in `pooler_output`."""

    last_hidden_state: Tensor | None = None
    pooler_output: Tensor | None = None
    hidden_states: Tensors | None = None
    attentions: Tensors | None = None


@dataclass
class BaseModelOutputWithPastAndCrossAttentions(ModelOutput):
    """The result of a decoder without a head that may read an encoder's."""

    last_hidden_state: Tensor | None = None
    past_key_values: Any = None
    hidden_states: Tensors | None = None
    attentions: Tensors | None = None
    cross_attentions: Tensors | None = None


@dataclass
class BaseModelOutputWithPoolingAndCrossAttentions(ModelOutput):
    """The result of an encoder without a head that may be a decoder."""

    last_hidden_state: Tensor | None = None
    pooler_output: Tensor | None = None
    hidden_states: Tensors | None = None
    past_key_values: Any = None
    attentions: Tensors | None = None
    cross_attentions: Tensors | None = None


@dataclass
class CausalLMOutput(ModelOutput):
    """The result of a language model without a cache."""

    loss: Tensor | None = None
    logits: Tensor | None = None
    hidden_states: Tensors | None = None
    attentions: Tensors | None = None


@dataclass
class CausalLMOutputWithPast(ModelOutput):
    """The result of a language model."""

    loss: Tensor | None = None
    logits: Tensor | None = None
    past_key_values: Any = None
    hidden_states: Tensors | None = None
    attentions: Tensors | None = None


@dataclass
class CausalLMOutputWithCrossAttentions(ModelOutput):
    """The result of a language model that may read an encoder's result."""

    loss: Tensor | None = None
    logits: Tensor | None = None
    past_key_values: Any = None
    hidden_states: Tensors | None = None
    attentions: Tensors | None = None
    cross_attentions: Tensors | None = None


@dataclass
class MaskedLMOutput(ModelOutput):
    """The result of a masked language model."""

    loss: Tensor | None = None
    logits: Tensor | None = None
    hidden_states: Tensors | None = None
    attentions: Tensors | None = None


@dataclass
class MoeCausalLMOutputWithPast(ModelOutput):
    """The result of a language model with experts."""

    loss: Tensor | None = None
    aux_loss: Tensor | None = None
    logits: Tensor | None = None
    past_key_values: Any = None
    hidden_states: Tensors | None = None
    attentions: Tensors | None = None
    router_logits: Tensors | None = None


@dataclass
class MoeModelOutputWithPast(ModelOutput):
    """The result of a decoder with experts, without a head."""

    last_hidden_state: Tensor | None = None
    past_key_values: Any = None
    hidden_states: Tensors | None = None
    attentions: Tensors | None = None
    router_logits: Tensors | None = None


@dataclass
class ImageClassifierOutput(ModelOutput):
    """The result of a classifier of images."""

    loss: Tensor | None = None
    logits: Tensor | None = None
    hidden_states: Tensors | None = None
    attentions: Tensors | None = None


@dataclass
class BackboneOutput(ModelOutput):
    """The result of the eyes of a model: maps of some stages."""

    feature_maps: Tensors | None = None
    hidden_states: Tensors | None = None
    attentions: Tensors | None = None


@dataclass
class MaskedImageModelingOutput(ModelOutput):
    """The result of a model that restores images."""

    loss: Tensor | None = None
    reconstruction: Tensor | None = None
    hidden_states: Tensors | None = None
    attentions: Tensors | None = None


@dataclass
class MultipleChoiceModelOutput(ModelOutput):
    """The result of a model that chooses one of several texts."""

    loss: Tensor | None = None
    logits: Tensor | None = None
    hidden_states: Tensors | None = None
    attentions: Tensors | None = None


@dataclass
class NextSentencePredictorOutput(ModelOutput):
    """The result of a model that says whether one text follows another."""

    loss: Tensor | None = None
    logits: Tensor | None = None
    hidden_states: Tensors | None = None
    attentions: Tensors | None = None


@dataclass
class QuestionAnsweringModelOutput(ModelOutput):
    """The result of a model that finds an answer in a text."""

    loss: Tensor | None = None
    start_logits: Tensor | None = None
    end_logits: Tensor | None = None
    hidden_states: Tensors | None = None
    attentions: Tensors | None = None


@dataclass
class ObjectDetectionOutput(ModelOutput):
    """The result of a model that finds objects."""

    loss: Tensor | None = None
    logits: Tensor | None = None
    pred_boxes: Tensor | None = None
    last_hidden_state: Tensor | None = None


@dataclass
class SemanticSegmenterOutput(ModelOutput):
    """The result of a model that labels pixels."""

    loss: Tensor | None = None
    logits: Tensor | None = None
    hidden_states: Tensors | None = None
    attentions: Tensors | None = None


@dataclass
class ImageSegmentationOutput(ModelOutput):
    """The result of a model that finds segments: labels of pixels, or of queries with their masks."""

    loss: Tensor | None = None
    logits: Tensor | None = None
    pred_boxes: Tensor | None = None
    pred_masks: Tensor | None = None
    class_queries_logits: Tensor | None = None
    masks_queries_logits: Tensor | None = None


@dataclass
class DepthEstimatorOutput(ModelOutput):
    """The result of a model that estimates depths."""

    loss: Tensor | None = None
    predicted_depth: Tensor | None = None
    hidden_states: Tensors | None = None
    attentions: Tensors | None = None


@dataclass
class Seq2SeqLMOutput(ModelOutput):
    """The result of a language model with an encoder."""

    loss: Tensor | None = None
    logits: Tensor | None = None
    past_key_values: Any = None
    decoder_hidden_states: Tensors | None = None
    decoder_attentions: Tensors | None = None
    cross_attentions: Tensors | None = None
    encoder_last_hidden_state: Tensor | None = None
    encoder_hidden_states: Tensors | None = None
    encoder_attentions: Tensors | None = None


@dataclass
class Seq2SeqModelOutput(ModelOutput):
    """The result of an encoder and a decoder, without a head."""

    last_hidden_state: Tensor | None = None
    past_key_values: Any = None
    decoder_hidden_states: Tensors | None = None
    decoder_attentions: Tensors | None = None
    cross_attentions: Tensors | None = None
    encoder_last_hidden_state: Tensor | None = None
    encoder_hidden_states: Tensors | None = None
    encoder_attentions: Tensors | None = None


@dataclass
class Seq2SeqQuestionAnsweringModelOutput(ModelOutput):
    """The result of a model with an encoder that finds an answer in a text."""

    loss: Tensor | None = None
    start_logits: Tensor | None = None
    end_logits: Tensor | None = None
    past_key_values: Any = None
    decoder_hidden_states: Tensors | None = None
    decoder_attentions: Tensors | None = None
    cross_attentions: Tensors | None = None
    encoder_last_hidden_state: Tensor | None = None
    encoder_hidden_states: Tensors | None = None
    encoder_attentions: Tensors | None = None


@dataclass
class Seq2SeqSequenceClassifierOutput(ModelOutput):
    """The result of a model with an encoder that labels texts."""

    loss: Tensor | None = None
    logits: Tensor | None = None
    past_key_values: Any = None
    decoder_hidden_states: Tensors | None = None
    decoder_attentions: Tensors | None = None
    cross_attentions: Tensors | None = None
    encoder_last_hidden_state: Tensor | None = None
    encoder_hidden_states: Tensors | None = None
    encoder_attentions: Tensors | None = None


@dataclass
class SequenceClassifierOutput(ModelOutput):
    """The result of a model that labels texts."""

    loss: Tensor | None = None
    logits: Tensor | None = None
    hidden_states: Tensors | None = None
    attentions: Tensors | None = None


@dataclass
class SequenceClassifierOutputWithPast(ModelOutput):
    """The result of a decoder that labels texts."""

    loss: Tensor | None = None
    logits: Tensor | None = None
    past_key_values: Any = None
    hidden_states: Tensors | None = None
    attentions: Tensors | None = None


@dataclass
class TokenClassifierOutput(ModelOutput):
    """The result of a model that labels tokens."""

    loss: Tensor | None = None
    logits: Tensor | None = None
    hidden_states: Tensors | None = None
    attentions: Tensors | None = None


@dataclass
class AlbertForPreTrainingOutput(ModelOutput):
    """The result of ALBERT with both heads of its training."""

    loss: Tensor | None = None
    prediction_logits: Tensor | None = None
    sop_logits: Tensor | None = None
    hidden_states: Tensors | None = None
    attentions: Tensors | None = None


@dataclass
class Wav2Vec2BaseModelOutput(ModelOutput):
    """The result of an encoder of waveforms, with the frames that its convolutions made."""

    last_hidden_state: Tensor | None = None
    extract_features: Tensor | None = None
    hidden_states: Tensors | None = None
    attentions: Tensors | None = None


@dataclass
class VitsModelOutput(ModelOutput):
    """The result of a VITS: the samples of texts, and the frames that they are made of."""

    waveform: Tensor | None = None
    sequence_lengths: Tensor | None = None
    spectrogram: Tensor | None = None
    hidden_states: Tensors | None = None
    attentions: Tensors | None = None


@dataclass
class XVectorOutput(ModelOutput):
    """The result of a model of speakers: `embeddings` has a vector for each sound."""

    loss: Tensor | None = None
    logits: Tensor | None = None
    embeddings: Tensor | None = None
    hidden_states: Tensors | None = None
    attentions: Tensors | None = None


@dataclass
class BertForPreTrainingOutput(ModelOutput):
    """The result of BERT with both heads of its training."""

    loss: Tensor | None = None
    prediction_logits: Tensor | None = None
    seq_relationship_logits: Tensor | None = None
    hidden_states: Tensors | None = None
    attentions: Tensors | None = None
