"""The names of models and of `AutoModel` classes, which follow from those of the architectures."""

from __future__ import annotations

import re

from tallow.models.architectures import ARCHITECTURES, PREFIXES, SPEECH, WRITES
from tallow.transformers.configuration_defaults import NAMES as CONFIGS

PARTS = ("Model", "For")  # with which the names of classes go on after that of the family
# Names of transformers whose class of `tallow.models` is that of another architecture: the whole model, of which
# `forward` leaves out the head.
WITHOUT_HEAD = {
    "BartModel": "BartForConditionalGeneration",
    "MarianModel": "MarianMTModel",
    **{f"{name}Model": name + WRITES for name in ("M2M100", "MBart", "MT5", "Pegasus", "T5", "UMT5")},
    "WhisperModel": "WhisperForConditionalGeneration",
}
# The families that transformers does not have.
_OWN = {PREFIXES[kind] for kind in PREFIXES if kind not in CONFIGS} - {PREFIXES.get(kind) for kind in CONFIGS}
_ALL = dict.fromkeys((*ARCHITECTURES, *WITHOUT_HEAD))
NAMES = tuple(name for name in _ALL if not name.startswith(tuple(f"{own}{part}" for own in _OWN for part in PARTS)))
# The base of the classes of each family -> its model type. Parts of CLIP have that of the whole.
BASES = {
    f"{PREFIXES[kind]}PreTrainedModel": kind
    for kind in reversed(CONFIGS)
    if kind in PREFIXES and not kind.startswith("clip_")
}

# The ends of the names of classes for each task; the first that an architecture has.
HEADS = {
    "AutoModel": "Model TextModel",
    "AutoModelForPreTraining": "ForPreTraining ForMaskedLM ForConditionalGeneration ForCausalLM LMHeadModel",
    "AutoModelForCausalLM": "ForCausalLM LMHeadModel",
    "AutoModelForMaskedLM": "ForMaskedLM",
    "AutoModelForSeq2SeqLM": "ForConditionalGeneration MTModel",
    "AutoModelForSequenceClassification": "ForSequenceClassification TextForSequenceClassification",
    "AutoModelForTokenClassification": "ForTokenClassification",
    "AutoModelForQuestionAnswering": "ForQuestionAnswering",
    "AutoModelForMultipleChoice": "ForMultipleChoice",
    "AutoModelForNextSentencePrediction": "ForNextSentencePrediction",
    "AutoModelForTextEncoding": "Model EncoderModel",
    "AutoModelForImageClassification": "ForImageClassification",
    "AutoModelForObjectDetection": "ForObjectDetection",
    "AutoModelForDepthEstimation": "ForDepthEstimation",
    "AutoModelForSemanticSegmentation": "ForSemanticSegmentation",
    "AutoModelForImageSegmentation": "ForSegmentation",
    "AutoModelForImageTextToText": "ForConditionalGeneration",
    "AutoModelForVisualQuestionAnswering": "ForQuestionAnswering",
    "AutoModelForZeroShotImageClassification": "Model",
    "AutoModelForSpeechSeq2Seq": "ForConditionalGeneration",
    "AutoModelForAudioClassification": "ForAudioClassification ForSequenceClassification",
    "AutoModelForAudioFrameClassification": "ForAudioFrameClassification",
    "AutoModelForAudioXVector": "ForXVector",
    "AutoModelForCTC": "ForCTC",
    "AutoModelForMaskedImageModeling": "ForMaskedImageModeling",
    "AutoBackbone": "Backbone",
    "AutoModelForTextToWaveform": "Model",
}
# The tables from configs to models whose names do not follow from those of the classes.
_OTHER_TABLES = {
    "AutoModel": "MODEL_MAPPING",
    "AutoBackbone": "MODEL_FOR_BACKBONE_MAPPING",
    "AutoModelForPreTraining": "MODEL_FOR_PRETRAINING_MAPPING",
    "AutoModelForSeq2SeqLM": "MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING",
}


def _table(task: str) -> str:
    """Return the name of the table of a class, such as MODEL_FOR_CAUSAL_LM_MAPPING."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z0-9])", "_", task.removeprefix("AutoModelFor"))
    return _OTHER_TABLES.get(task, f"MODEL_FOR_{words.upper()}_MAPPING")


MAPPINGS = {_table(task): task for task in HEADS}
# The model types of a task, where the end of a name does not tell.
ONLY = {
    "AutoModelForSeq2SeqLM": ("bart", "m2m_100", "marian", "mbart", "mt5", "pegasus", "t5", "umt5"),
    "AutoModelForSpeechSeq2Seq": ("whisper",),
    "AutoModelForImageTextToText": ("blip",),
    "AutoModelForVisualQuestionAnswering": ("blip",),
    "AutoModelForPreTraining": tuple(kind for kind in PREFIXES if kind != "blip"),
    "AutoModelForQuestionAnswering": tuple(kind for kind in PREFIXES if kind != "blip"),
    "AutoModelForAudioClassification": (*SPEECH, "whisper"),
    "AutoModelForSequenceClassification": tuple(kind for kind in PREFIXES if kind not in SPEECH),
    "AutoModelForTextToWaveform": ("vits",),
    "AutoModelForZeroShotImageClassification": ("clip",),
    "AutoModelForTextEncoding": (
        *("albert", "bert", "deberta-v2", "distilbert", "electra", "mobilebert", "roberta"),
        *("xlm-roberta", "xlm-roberta-xl", "mt5", "t5", "umt5"),
    ),
}
