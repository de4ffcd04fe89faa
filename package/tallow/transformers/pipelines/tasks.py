"""The tasks of `pipeline`: the class of each, the classes that load its models, and other names."""

from __future__ import annotations

from typing import NamedTuple

from tallow import models
from tallow.errors import InvalidKeyError, UnsupportedError


class Task(NamedTuple):
    """A task.

    Attributes:
        pipeline: the name of its class in `tallow.transformers.pipelines`.
        models: the names of the classes that load its models, of which the first that can does.
        heads: the ends of the architectures of its models, which say what an unnamed task is.
        default: the model that transformers takes if none is named; for models in ONNX files, that of transformers.js.
        onnx: models of architectures that tallow lacks are loaded from ONNX files.
    """

    pipeline: str
    models: tuple[str, ...]
    heads: tuple[str, ...]
    default: str
    onnx: bool = False


TASKS = {
    "audio-classification": Task(
        "AudioClassificationPipeline",
        ("AutoModelForAudioClassification",),
        ("ForAudioClassification", *(f"{name}ForSequenceClassification" for name in models.SPEECH_HEADS)),
        "sanchit-gandhi/whisper-medium-fleurs-lang-id",
    ),
    "automatic-speech-recognition": Task(
        "AutomaticSpeechRecognitionPipeline",
        ("AutoModelForCTC", "AutoModelForSpeechSeq2Seq"),
        ("ForCTC", "WhisperForConditionalGeneration"),
        "openai/whisper-tiny",
    ),
    "depth-estimation": Task(
        "DepthEstimationPipeline",
        ("AutoModelForDepthEstimation",),
        ("ForDepthEstimation",),
        "onnx-community/depth-anything-v2-small",
        onnx=True,
    ),
    "feature-extraction": Task(
        "FeatureExtractionPipeline", ("AutoModel",), ("Model",), "distilbert/distilbert-base-cased"
    ),
    "fill-mask": Task("FillMaskPipeline", ("AutoModelForMaskedLM",), ("ForMaskedLM",), "distilbert/distilroberta-base"),
    "image-classification": Task(
        "ImageClassificationPipeline",
        ("AutoModelForImageClassification",),
        ("ForImageClassification",),
        "google/vit-base-patch16-224",
    ),
    "image-feature-extraction": Task(
        "ImageFeatureExtractionPipeline",
        ("AutoModel",),
        ("ViTModel", "Dinov2Model", "ResNetModel"),
        "google/vit-base-patch16-224",
    ),
    "image-segmentation": Task(
        "ImageSegmentationPipeline",
        ("AutoModelForSemanticSegmentation", "AutoModelForImageSegmentation"),
        ("ForSegmentation", "ForSemanticSegmentation", "ForInstanceSegmentation", "ForUniversalSegmentation"),
        "Xenova/detr-resnet-50-panoptic",
        onnx=True,
    ),
    "object-detection": Task(
        "ObjectDetectionPipeline",
        ("AutoModelForObjectDetection",),
        ("ForObjectDetection",),
        "facebook/detr-resnet-50",
        onnx=True,
    ),
    "question-answering": Task(
        "QuestionAnsweringPipeline",
        ("AutoModelForQuestionAnswering",),
        ("ForQuestionAnswering",),
        "distilbert/distilbert-base-cased-distilled-squad",
    ),
    "summarization": Task("SummarizationPipeline", ("AutoModelForSeq2SeqLM",), (), "sshleifer/distilbart-cnn-12-6"),
    "text-classification": Task(
        "TextClassificationPipeline",
        ("AutoModelForSequenceClassification",),
        ("ForSequenceClassification",),
        "distilbert/distilbert-base-uncased-finetuned-sst-2-english",
    ),
    "text-generation": Task(
        "TextGenerationPipeline",
        ("AutoModelForCausalLM",),
        ("ForCausalLM", "LMHeadModel"),
        "HuggingFaceTB/SmolLM2-135M-Instruct",
    ),
    "text-to-audio": Task(
        "TextToAudioPipeline", ("AutoModelForTextToWaveform",), ("VitsModel",), "facebook/mms-tts-eng"
    ),
    "text2text-generation": Task(
        "Text2TextGenerationPipeline", ("AutoModelForSeq2SeqLM",), ("ForConditionalGeneration",), "google-t5/t5-small"
    ),
    "token-classification": Task(
        "TokenClassificationPipeline",
        ("AutoModelForTokenClassification",),
        ("ForTokenClassification",),
        "dslim/bert-base-NER",
    ),
    "translation": Task(
        "TranslationPipeline", ("AutoModelForSeq2SeqLM",), ("MarianMTModel",), "Helsinki-NLP/opus-mt-en-fr"
    ),
    "zero-shot-classification": Task(
        "ZeroShotClassificationPipeline",
        ("AutoModelForSequenceClassification",),
        (),
        "MoritzLaurer/xtremedistil-l6-h256-zeroshot-v1.1-all-33",
    ),
    "zero-shot-image-classification": Task(
        "ZeroShotImageClassificationPipeline",
        ("AutoModelForZeroShotImageClassification",),
        ("CLIPModel",),
        "openai/clip-vit-base-patch32",
    ),
}
ALIASES = {"ner": "token-classification", "sentiment-analysis": "text-classification"}
ALIASES |= {"text-to-speech": "text-to-audio"}
# Tasks of transformers whose models tallow does not have.
ELSEWHERE = frozenset(
    {"any-to-any", "decision", "document-question-answering"}
    | {"image-text-to-text", "image-to-image", "image-to-text", "keypoint-matching"}
    | {"mask-generation", "table-question-answering"}
    | {"video-classification", "visual-question-answering", "vqa", "zero-shot-audio-classification"}
    | {"zero-shot-object-detection"}
)


def task_named(name: str) -> str:
    """Return the task of a name or another name of it; of `translation_en_to_fr` that is `translation`.

    Raises:  UnsupportedError for a task that only transformers has; InvalidKeyError for any other name
    """
    name = ALIASES.get(name, name)
    if name.startswith("translation_"):
        parts = name.split("_")
        if len(parts) != 4 or parts[2] != "to":
            raise InvalidKeyError(f"the task {name!r:.80}", hint="a translation is named as translation_en_to_fr")
        return "translation"
    if name in ELSEWHERE:
        raise UnsupportedError(
            f"the task {name!r} needs models that tallow does not have",
            hint="install transformers, and run the script with python -m tallow.compat",
        )
    if name not in TASKS:
        raise InvalidKeyError(f"unknown task {name!r:.80}", hint=f"the tasks: {', '.join(sorted({*TASKS, *ALIASES}))}")
    return name


def task_of(architecture: str) -> str | None:
    """Return the task that models of an architecture are for; None if there are several, or none."""
    heads = ((head, name) for name, task in TASKS.items() for head in task.heads if architecture.endswith(head))
    longest = max(heads, key=lambda each: len(each[0]), default=None)  # a Whisper's name ends as a T5's
    return None if longest is None else longest[1]


def get_supported_tasks() -> list[str]:
    """Return the names of all tasks."""
    return sorted({*TASKS, *ALIASES})
