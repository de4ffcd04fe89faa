"""transformers' names over tallow's own models, tokenizers and training.

    from tallow.transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained("Qwen/Qwen3-0.6B")
    model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen3-0.6B")

Names, arguments, defaults and results are those of transformers; the computation is that of `tallow.models`,
`tallow.text`, `tallow.generation` and `tallow.training`. Names are imported at first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tallow.lazy_names import names_of
from tallow.transformers.configuration_defaults import NAMES as CONFIGS
from tallow.transformers.generation import LAZY as _GENERATION
from tallow.transformers.model_names import BASES, HEADS, MAPPINGS
from tallow.transformers.model_names import NAMES as MODELS

# The modules that define the names.
HOMES = {
    "feature_extraction": "AutoFeatureExtractor",
    "feature_extraction_speech": "Wav2Vec2FeatureExtractor",
    "feature_extraction_whisper": "WhisperFeatureExtractor",
    "image_processing": "AutoImageProcessor BaseImageProcessor",
    "preprocessing": "BatchFeature",
    "processing": "AutoProcessor BlipProcessor CLIPProcessor ProcessorMixin Wav2Vec2Processor WhisperProcessor",
    "auto_tokenizer": "AutoTokenizer",
    "batch_encoding": "BatchEncoding CharSpan TokenSpan",
    "cache_utils": "Cache DynamicCache EncoderDecoderCache QuantizedCache StaticCache",
    "configuration": "AutoConfig PreTrainedConfig PretrainedConfig",
    "modeling": "PreTrainedModel",
    "quantization_config": "BitsAndBytesConfig",
    "hf_argparser": "HfArgumentParser",
    "utils": (
        "check_min_version require_version send_example_telemetry is_torch_xla_available "
        "is_datasets_available is_flash_attn_2_available is_flax_available is_sentencepiece_available "
        "is_tf_available is_tokenizers_available is_torch_available is_vision_available"
    ),
    "modeling_outputs": (
        "BackboneOutput BaseModelOutput BaseModelOutputWithPast BaseModelOutputWithPooling MaskedImageModelingOutput "
        "BaseModelOutputWithPastAndCrossAttentions BaseModelOutputWithPoolingAndCrossAttentions "
        "CausalLMOutput CausalLMOutputWithPast CausalLMOutputWithCrossAttentions ImageClassifierOutput MaskedLMOutput "
        "ModelOutput MoeCausalLMOutputWithPast MoeModelOutputWithPast MultipleChoiceModelOutput "
        "NextSentencePredictorOutput QuestionAnsweringModelOutput Seq2SeqLMOutput Seq2SeqModelOutput "
        "Seq2SeqQuestionAnsweringModelOutput Seq2SeqSequenceClassifierOutput SequenceClassifierOutput "
        "SequenceClassifierOutputWithPast TokenClassifierOutput Wav2Vec2BaseModelOutput XVectorOutput"
    ),
    "data_collator": (
        "DataCollator DataCollatorForMultipleChoice DataCollatorForSeq2Seq DataCollatorForTokenClassification "
        "DataCollatorWithFlattening DataCollatorWithPadding DefaultDataCollator default_data_collator"
    ),
    "data_collator_mlm": "DataCollatorForLanguageModeling",
    "data_collator_plm": "DataCollatorForPermutationLanguageModeling",
    "optimization": (
        "get_constant_schedule get_constant_schedule_with_warmup get_cosine_schedule_with_warmup "
        "get_cosine_with_hard_restarts_schedule_with_warmup get_cosine_with_min_lr_schedule_with_warmup "
        "get_cosine_with_min_lr_schedule_with_warmup_lr_rate get_inverse_sqrt_schedule "
        "get_linear_schedule_with_warmup get_polynomial_decay_schedule_with_warmup get_reduce_on_plateau_schedule "
        "get_scheduler get_wsd_schedule"
    ),
    "pipelines": (
        "AggregationStrategy AudioClassificationPipeline AutomaticSpeechRecognitionPipeline ChunkPipeline "
        "DepthEstimationPipeline FeatureExtractionPipeline FillMaskPipeline ImageClassificationPipeline "
        "ImageFeatureExtractionPipeline ImageSegmentationPipeline NerPipeline ObjectDetectionPipeline Pipeline "
        "QuestionAnsweringPipeline SummarizationPipeline Text2TextGenerationPipeline TextClassificationPipeline "
        "TextGenerationPipeline TextToAudioPipeline TokenClassificationPipeline TranslationPipeline "
        "ZeroShotClassificationPipeline ZeroShotImageClassificationPipeline pipeline"
    ),
    "trainer": "Trainer",
    "trainer_callback": ("DefaultFlowCallback EarlyStoppingCallback TrainerCallback TrainerControl TrainerState"),
    "trainer_progress": "PrinterCallback ProgressCallback",
    "trainer_seq2seq": "Seq2SeqTrainer",
    "trainer_utils": "EvalPrediction IntervalStrategy SchedulerType enable_full_determinism set_seed",
    "training_args": "Seq2SeqTrainingArguments TrainingArguments",
    "padding": "PaddingStrategy TruncationStrategy",
    "tensor_types": "TensorType",
    "tokenization": "PreTrainedTokenizer PreTrainedTokenizerBase PreTrainedTokenizerFast TokenizersBackend",
    "tokenization_files": "AddedToken",
}
_MODULES = {home: f"tallow.transformers.{home}" for home in (*HOMES, "generation", "logging", "utils")}
_LAZY = {name: f"tallow.transformers.{home}:{name}" for home, names in HOMES.items() for name in names.split()}
# Names that follow from those of the architectures.
_LAZY |= {name: f"tallow.transformers.model_classes:{name}" for name in (*MODELS, *BASES)}
_LAZY |= {name: f"tallow.transformers.configuration:{name}" for name in CONFIGS.values()}
_LAZY |= {name: f"tallow.transformers.auto:{name}" for name in HEADS}
_LAZY |= {name: f"tallow.transformers.auto_mappings:{name}" for name in ("CONFIG_MAPPING", *MAPPINGS)}
_LAZY |= _GENERATION | _MODULES | {"Adafactor": "tallow.optim:Adafactor"}

__version__ = "5.23.0"  # whose names and results these are

__all__ = list(_LAZY)


def _by_rule(name: str) -> str | None:
    """Return the target of a name such as BertTokenizerFast, which no table lists."""
    if name.endswith(("Tokenizer", "TokenizerFast")):
        return f"tallow.transformers.auto_tokenizer:{name}"
    if name.endswith(("ImageProcessor", "ImageProcessorFast", "ImageProcessorPil")):
        return f"tallow.transformers.image_processing:{name}"
    return None


if TYPE_CHECKING:
    from tallow.signatures.lazy_transformers import *  # noqa: F403

__getattr__, __dir__ = names_of(__name__, _LAZY, rule=_by_rule)
