"""Classes of models by transformers' names, each made at its first use from the class of `tallow.models`.

`BertForMaskedLM` here is `tallow.models.BertForMaskedLM` with transformers' config, arguments and results: its weights,
fused blocks, quantisation and loading are those of `tallow.models`. A class takes its `forward` by the kind of its
base and of its head.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tallow import models
from tallow.models import architectures
from tallow.models.architectures import ARCHITECTURES
from tallow.models.causal_lm import CausalLM
from tallow.models.decoders.decoder import DecoderModel, DecoderModule
from tallow.models.pretrained import PretrainedModel
from tallow.models.seq2seq.model import Seq2SeqLM
from tallow.transformers import forward_captions as captions
from tallow.transformers import forward_decoders as decoders
from tallow.transformers import forward_encoders as encoders
from tallow.transformers import forward_gpt2 as gpt2
from tallow.transformers import forward_images as images
from tallow.transformers import forward_objects as objects
from tallow.transformers import forward_pair_heads as pairs
from tallow.transformers import forward_pixels as pixels
from tallow.transformers import forward_seq2seq as seq2seq
from tallow.transformers import forward_speaking as speaking
from tallow.transformers import forward_speech as speech
from tallow.transformers import forward_text_decoders as texts
from tallow.transformers.configuration import config_class, unsupported
from tallow.transformers.model_names import BASES, NAMES, WITHOUT_HEAD
from tallow.transformers.modeling import PreTrainedModel

PAIR_HEADS = "tallow.models.seq2seq.pair_heads"
TEXT_DECODERS = {
    "tallow.models.seq2seq.text_decoder": texts.BartLMForward,
    "tallow.models.whisper.text_decoder": texts.WhisperLMForward,
}
# The end of a name -> `forward`, of encoders of texts and of decoders. The first that fits.
_ENCODERS: dict[str, type] = {
    "AlbertForPreTraining": encoders.OrderedPreTrainingForward,
    "ElectraForPreTraining": encoders.ReplacedTokensForward,
    "ForPreTraining": encoders.PreTrainingForward,
    "ModernBertForMaskedLM": encoders.CountedMaskedLMForward,
    "ForMaskedLM": encoders.MaskedLMForward,
    "ForSequenceClassification": encoders.TextClassifierForward,
    "XLMRobertaXLForTokenClassification": encoders.UnpaddedTokensForward,
    "ForTokenClassification": encoders.TokenClassifierForward,
    "ForQuestionAnswering": encoders.SpanForward,
    "ForNextSentencePrediction": encoders.NextSentenceForward,
    "ForMultipleChoice": encoders.MultipleChoiceForward,
    "ForCausalLM": encoders.EncoderLMForward,
    "LMHeadModel": encoders.EncoderLMForward,
    "Model": encoders.EncoderModelForward,
}
_DECODERS: dict[str, type] = {
    "ForSequenceClassification": decoders.DecoderTextsForward,
    "ForTokenClassification": decoders.DecoderTokensForward,
    "ForMaskedLM": decoders.DecoderMaskedLMForward,
    "ForQuestionAnswering": decoders.DecoderSpansForward,
}
_LANGUAGE_MODELS = (decoders.CausalLMForward, gpt2.GPT2Forward, decoders.MoeForward)
_DECODERS_ALONE = (decoders.DecoderModelForward, gpt2.GPT2ModelForward, decoders.MoeModelForward)
_IMAGES: dict[str, type] = {
    "BlipForConditionalGeneration": captions.CaptionForward,
    "BlipForQuestionAnswering": captions.AnswerForward,
    "ForDepthEstimation": pixels.DepthForward,
    "ForSemanticSegmentation": pixels.PixelLabelsForward,
    "SegformerForImageClassification": pixels.StagesClassifierForward,
    "SegformerModel": pixels.StagesModelForward,
    "ForObjectDetection": objects.DetrForward,
    "ForSegmentation": objects.DetrMasksForward,
    "DetrModel": objects.DetrModelForward,
    "ForImageClassification": images.ImageClassifierForward,
    "ForMaskedImageModeling": images.MaskedImageForward,
    "Backbone": images.BackboneForward,
    "CLIPTextModelWithProjection": images.ProjectedTextForward,
    "CLIPTextModel": images.CLIPTextForward,
    "CLIPVisionModelWithProjection": images.ProjectedImageForward,
    "CLIPModel": images.CLIPForward,
    "Model": images.ImageModelForward,
}
_SPEECH: dict[str, type] = {
    "ForCTC": speech.LettersForward,
    "ForSequenceClassification": speech.SoundLabelsForward,
    "ForAudioFrameClassification": speech.FrameLabelsForward,
    "ForXVector": speech.SpeakersForward,
    "VitsModel": speaking.VitsForward,
    "HubertModel": speech.PlainSpeechModelForward,
    "Model": speech.SpeechModelForward,
}
_PAIRS: dict[str, type] = {
    "ForSequenceClassification": pairs.PairTextsForward,
    "ForTokenClassification": pairs.T5TokensForward,
    "ForQuestionAnswering": pairs.PairSpansForward,
}
_made: dict[str, type[PreTrainedModel]] = {}


def model_class(name: str) -> type[PreTrainedModel]:
    """Return the class of a name, such as "BertForMaskedLM"; of "BertPreTrainedModel" the base of a program's own.

    Raises:  CheckpointError for a name that tallow does not have
    """
    if name not in _made and name in BASES:
        _made[name] = _base(name, BASES[name])
    if name not in _made:
        architecture = WITHOUT_HEAD.get(name, name)
        if architecture not in ARCHITECTURES:
            raise unsupported(name)
        core = getattr(models, ARCHITECTURES[architecture])
        _made[name] = _make(name, core)
    return _made[name]


def _make(name: str, core: type[PretrainedModel]) -> type[PreTrainedModel]:
    kind = model_type_of(name, core)
    contents = {
        "__module__": __name__,
        "__doc__": f"transformers' {name}: see `forward` for the arguments, `from_pretrained` for the files.",
        "core_class": core,
        "model_type": kind,
        "config_class": config_class(kind),
    }
    return type(name, (_forward_of(name, core), PreTrainedModel, core), contents)


def _base(name: str, kind: str) -> type[PreTrainedModel]:
    core: Any = getattr(models, ARCHITECTURES[architectures.MODEL_TYPES[kind]])
    contents = {
        "__module__": __name__,
        "__doc__": f"The base of models that programs write, with the config of {kind}; see `PreTrainedModel`.",
        "model_type": kind,
        "config_class": config_class(kind),
        "base_model_prefix": core.base_model_prefix,
    }
    return type(name, (PreTrainedModel,), contents)


def model_type_of(name: str, core: type[PretrainedModel]) -> str:
    """Return the `model_type` of a class by its name: of those that its config reads, that of the longest prefix."""
    own = core.config_class.model_types
    fitting = [kind for kind in own if name.startswith(architectures.PREFIXES.get(kind, "-"))]
    return max(fitting, key=lambda kind: len(architectures.PREFIXES[kind])) if fitting else own[0]


def _forward_of(name: str, core: type[PretrainedModel]) -> type:
    if name in WITHOUT_HEAD:
        return seq2seq.SpeechModelForward if name.startswith("Whisper") else seq2seq.TextSeq2SeqModelForward
    if name.startswith("Whisper") and not issubclass(core, CausalLM):
        return pairs.SoundClassifierForward if name.endswith("ForAudioClassification") else seq2seq.SpeechForward
    if issubclass(core, Seq2SeqLM):
        return seq2seq.TextSeq2SeqForward
    if any(base.__module__ == PAIR_HEADS for base in core.__mro__):
        return _by_end(name, _PAIRS)
    if issubclass(core, CausalLM):
        for base in core.__mro__:
            if base.__module__ in TEXT_DECODERS:
                return TEXT_DECODERS[base.__module__]
        if name.endswith("DoubleHeadsModel"):
            return gpt2.DoubleHeadsForward
        return _of_family(name, core, _LANGUAGE_MODELS)
    if issubclass(core, DecoderModel):
        return _of_family(name, core, _DECODERS_ALONE)
    if issubclass(core, DecoderModule):
        return _by_end(name, _DECODERS)
    if core.__module__.startswith("tallow.models.speech"):
        return _by_end(name, _SPEECH)
    if core.__module__.startswith("tallow.models.vision"):
        return _by_end(name, _IMAGES)
    return encoders.T5EncoderForward if name.endswith("T5EncoderModel") else _by_end(name, _ENCODERS)


def _of_family(name: str, core: type[PretrainedModel], kinds: tuple[type, type, type]) -> type:
    """Return that of a plain decoder, of GPT-2, or of one with experts, whose results have further fields."""
    plain, gpt2, experts = kinds
    if name.startswith("GPT2"):
        return gpt2
    return experts if "num_experts_per_tok" in core.config_class.__dataclass_fields__ else plain


def _by_end(name: str, kinds: Mapping[str, type]) -> type:
    return next(kind for end, kind in kinds.items() if name.endswith(end))


def __getattr__(name: str) -> Any:
    if name in NAMES or name in BASES:
        return model_class(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
