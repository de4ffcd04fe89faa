"""Names that a package imports on first use. Written by scripts/build_stubs.py."""

from tallow.optim.adafactor import Adafactor as Adafactor
from tallow.transformers.tokenization_files import AddedToken as AddedToken
from tallow.transformers.pipelines.token_classification import AggregationStrategy as AggregationStrategy
from tallow.transformers.configuration import PreTrainedConfig as _PreTrainedConfig
from tallow.transformers.modeling import PreTrainedModel as _PreTrainedModel
from tallow.transformers.generation.logits_process import AlternatingCodebooksLogitsProcessor as AlternatingCodebooksLogitsProcessor
from tallow.transformers.generation.streamers import AsyncTextIteratorStreamer as AsyncTextIteratorStreamer
from tallow.transformers.configuration import AutoConfig as AutoConfig
from tallow.transformers.feature_extraction import AutoFeatureExtractor as AutoFeatureExtractor
from tallow.transformers.image_processing import AutoImageProcessor as AutoImageProcessor
from tallow.transformers.auto import AutoClass as _AutoClass
from tallow.transformers.processing import AutoProcessor as AutoProcessor
from tallow.transformers.auto_tokenizer import AutoTokenizer as AutoTokenizer
from tallow.transformers.pipelines.speech_recognition import AutomaticSpeechRecognitionPipeline as AutomaticSpeechRecognitionPipeline
from tallow.transformers.image_processing import BaseImageProcessor as BaseImageProcessor
from tallow.transformers.modeling_outputs import BaseModelOutput as BaseModelOutput
from tallow.transformers.modeling_outputs import BaseModelOutputWithPast as BaseModelOutputWithPast
from tallow.transformers.modeling_outputs import BaseModelOutputWithPastAndCrossAttentions as BaseModelOutputWithPastAndCrossAttentions
from tallow.transformers.modeling_outputs import BaseModelOutputWithPooling as BaseModelOutputWithPooling
from tallow.transformers.modeling_outputs import BaseModelOutputWithPoolingAndCrossAttentions as BaseModelOutputWithPoolingAndCrossAttentions
from tallow.transformers.generation.streamers import BaseStreamer as BaseStreamer
from tallow.transformers.generation.watermarking import BaseWatermarkingConfig as BaseWatermarkingConfig
from tallow.transformers.batch_encoding import BatchEncoding as BatchEncoding
from tallow.transformers.preprocessing import BatchFeature as BatchFeature
from tallow.transformers.quantization_config import BitsAndBytesConfig as BitsAndBytesConfig
from tallow.transformers.processing import CLIPProcessor as CLIPProcessor
from tallow.transformers.cache_utils import Cache as Cache
from tallow.transformers.modeling_outputs import CausalLMOutput as CausalLMOutput
from tallow.transformers.modeling_outputs import CausalLMOutputWithCrossAttentions as CausalLMOutputWithCrossAttentions
from tallow.transformers.modeling_outputs import CausalLMOutputWithPast as CausalLMOutputWithPast
from tallow.transformers.batch_encoding import CharSpan as CharSpan
from tallow.transformers.pipelines.base import ChunkPipeline as ChunkPipeline
from tallow.transformers.generation.guidance import ClassifierFreeGuidanceLogitsProcessor as ClassifierFreeGuidanceLogitsProcessor
from tallow.transformers.data_collator_mlm import DataCollatorForLanguageModeling as DataCollatorForLanguageModeling
from tallow.transformers.data_collator import DataCollatorForMultipleChoice as DataCollatorForMultipleChoice
from tallow.transformers.data_collator import DataCollatorForSeq2Seq as DataCollatorForSeq2Seq
from tallow.transformers.data_collator import DataCollatorForTokenClassification as DataCollatorForTokenClassification
from tallow.transformers.data_collator import DataCollatorWithFlattening as DataCollatorWithFlattening
from tallow.transformers.data_collator import DataCollatorWithPadding as DataCollatorWithPadding
from tallow.transformers.data_collator import DefaultDataCollator as DefaultDataCollator
from tallow.transformers.trainer_callback import DefaultFlowCallback as DefaultFlowCallback
from tallow.transformers.cache_utils import DynamicCache as DynamicCache
from tallow.transformers.trainer_callback import EarlyStoppingCallback as EarlyStoppingCallback
from tallow.transformers.cache_utils import EncoderDecoderCache as EncoderDecoderCache
from tallow.transformers.generation.logits_process import EncoderNoRepeatNGramLogitsProcessor as EncoderNoRepeatNGramLogitsProcessor
from tallow.transformers.generation.logits_process import EncoderRepetitionPenaltyLogitsProcessor as EncoderRepetitionPenaltyLogitsProcessor
from tallow.transformers.generation.stopping_criteria import EosTokenCriteria as EosTokenCriteria
from tallow.transformers.generation.warpers import EpsilonLogitsWarper as EpsilonLogitsWarper
from tallow.transformers.generation.warpers import EtaLogitsWarper as EtaLogitsWarper
from tallow.transformers.trainer_utils import EvalPrediction as EvalPrediction
from tallow.transformers.generation.logits_process import ExponentialDecayLengthPenalty as ExponentialDecayLengthPenalty
from tallow.transformers.pipelines.feature_extraction import FeatureExtractionPipeline as FeatureExtractionPipeline
from tallow.transformers.pipelines.fill_mask import FillMaskPipeline as FillMaskPipeline
from tallow.transformers.generation.logits_process import ForcedBOSTokenLogitsProcessor as ForcedBOSTokenLogitsProcessor
from tallow.transformers.generation.logits_process import ForcedEOSTokenLogitsProcessor as ForcedEOSTokenLogitsProcessor
from tallow.transformers.generation.outputs import GenerateBeamDecoderOnlyOutput as GenerateBeamDecoderOnlyOutput
from tallow.transformers.generation.outputs import GenerateBeamEncoderDecoderOutput as GenerateBeamEncoderDecoderOutput
from tallow.transformers.generation.outputs import GenerateDecoderOnlyOutput as GenerateDecoderOnlyOutput
from tallow.transformers.generation.outputs import GenerateEncoderDecoderOutput as GenerateEncoderDecoderOutput
from tallow.transformers.generation.configuration_utils import GenerationConfig as GenerationConfig
from tallow.transformers.generation.mixin import GenerationMixin as GenerationMixin
from tallow.transformers.generation.configuration_utils import GenerationMode as GenerationMode
from tallow.transformers.pipelines.images import ImageClassificationPipeline as ImageClassificationPipeline
from tallow.transformers.modeling_outputs import ImageClassifierOutput as ImageClassifierOutput
from tallow.transformers.pipelines.images import ImageFeatureExtractionPipeline as ImageFeatureExtractionPipeline
from tallow.transformers.generation.logits_process import InfNanRemoveLogitsProcessor as InfNanRemoveLogitsProcessor
from tallow.transformers.trainer_utils import IntervalStrategy as IntervalStrategy
from tallow.transformers.generation.logits_process import LogitNormalization as LogitNormalization
from tallow.transformers.generation.logits_process import LogitsProcessor as LogitsProcessor
from tallow.transformers.generation.logits_process import LogitsProcessorList as LogitsProcessorList
from tallow.transformers.modeling_outputs import MaskedLMOutput as MaskedLMOutput
from tallow.transformers.generation.stopping_criteria import MaxLengthCriteria as MaxLengthCriteria
from tallow.transformers.generation.stopping_criteria import MaxTimeCriteria as MaxTimeCriteria
from tallow.transformers.generation.logits_process import MinLengthLogitsProcessor as MinLengthLogitsProcessor
from tallow.transformers.generation.logits_process import MinNewTokensLengthLogitsProcessor as MinNewTokensLengthLogitsProcessor
from tallow.transformers.generation.warpers import MinPLogitsWarper as MinPLogitsWarper
from tallow.transformers.modeling_outputs import ModelOutput as ModelOutput
from tallow.transformers.modeling_outputs import MoeCausalLMOutputWithPast as MoeCausalLMOutputWithPast
from tallow.transformers.modeling_outputs import MoeModelOutputWithPast as MoeModelOutputWithPast
from tallow.transformers.modeling_outputs import MultipleChoiceModelOutput as MultipleChoiceModelOutput
from tallow.transformers.pipelines.token_classification import NerPipeline as NerPipeline
from tallow.transformers.modeling_outputs import NextSentencePredictorOutput as NextSentencePredictorOutput
from tallow.transformers.generation.logits_process import NoBadWordsLogitsProcessor as NoBadWordsLogitsProcessor
from tallow.transformers.generation.logits_process import NoRepeatNGramLogitsProcessor as NoRepeatNGramLogitsProcessor
from tallow.transformers.padding import PaddingStrategy as PaddingStrategy
from tallow.transformers.pipelines.base import Pipeline as Pipeline
from tallow.transformers.configuration import PreTrainedConfig as PreTrainedConfig
from tallow.transformers.modeling import PreTrainedModel as PreTrainedModel
from tallow.transformers.tokenization import PreTrainedTokenizer as PreTrainedTokenizer
from tallow.transformers.tokenization import PreTrainedTokenizerBase as PreTrainedTokenizerBase
from tallow.transformers.tokenization import PreTrainedTokenizerFast as PreTrainedTokenizerFast
from tallow.transformers.generation.logits_process import PrefixConstrainedLogitsProcessor as PrefixConstrainedLogitsProcessor
from tallow.transformers.configuration import PretrainedConfig as PretrainedConfig
from tallow.transformers.trainer_progress import PrinterCallback as PrinterCallback
from tallow.transformers.processing import ProcessorMixin as ProcessorMixin
from tallow.transformers.trainer_progress import ProgressCallback as ProgressCallback
from tallow.transformers.cache_utils import QuantizedCache as QuantizedCache
from tallow.transformers.modeling_outputs import QuestionAnsweringModelOutput as QuestionAnsweringModelOutput
from tallow.transformers.pipelines.question_answering import QuestionAnsweringPipeline as QuestionAnsweringPipeline
from tallow.transformers.generation.logits_process import RepetitionPenaltyLogitsProcessor as RepetitionPenaltyLogitsProcessor
from tallow.transformers.trainer_utils import SchedulerType as SchedulerType
from tallow.transformers.modeling_outputs import Seq2SeqLMOutput as Seq2SeqLMOutput
from tallow.transformers.modeling_outputs import Seq2SeqModelOutput as Seq2SeqModelOutput
from tallow.transformers.modeling_outputs import Seq2SeqQuestionAnsweringModelOutput as Seq2SeqQuestionAnsweringModelOutput
from tallow.transformers.modeling_outputs import Seq2SeqSequenceClassifierOutput as Seq2SeqSequenceClassifierOutput
from tallow.transformers.trainer_seq2seq import Seq2SeqTrainer as Seq2SeqTrainer
from tallow.transformers.training_args import Seq2SeqTrainingArguments as Seq2SeqTrainingArguments
from tallow.transformers.generation.logits_process import SequenceBiasLogitsProcessor as SequenceBiasLogitsProcessor
from tallow.transformers.modeling_outputs import SequenceClassifierOutput as SequenceClassifierOutput
from tallow.transformers.modeling_outputs import SequenceClassifierOutputWithPast as SequenceClassifierOutputWithPast
from tallow.transformers.cache_utils import StaticCache as StaticCache
from tallow.transformers.generation.stopping_criteria import StopStringCriteria as StopStringCriteria
from tallow.transformers.generation.stopping_criteria import StoppingCriteria as StoppingCriteria
from tallow.transformers.generation.stopping_criteria import StoppingCriteriaList as StoppingCriteriaList
from tallow.transformers.pipelines.text_to_text import SummarizationPipeline as SummarizationPipeline
from tallow.transformers.generation.logits_process import SuppressTokensAtBeginLogitsProcessor as SuppressTokensAtBeginLogitsProcessor
from tallow.transformers.generation.logits_process import SuppressTokensLogitsProcessor as SuppressTokensLogitsProcessor
from tallow.transformers.generation.watermarking import SynthIDTextWatermarkLogitsProcessor as SynthIDTextWatermarkLogitsProcessor
from tallow.transformers.generation.watermarking import SynthIDTextWatermarkingConfig as SynthIDTextWatermarkingConfig
from tallow.transformers.generation.warpers import TemperatureLogitsWarper as TemperatureLogitsWarper
from tallow.transformers.tensor_types import TensorType as TensorType
from tallow.transformers.pipelines.text_to_text import Text2TextGenerationPipeline as Text2TextGenerationPipeline
from tallow.transformers.pipelines.text_classification import TextClassificationPipeline as TextClassificationPipeline
from tallow.transformers.pipelines.text_generation import TextGenerationPipeline as TextGenerationPipeline
from tallow.transformers.generation.streamers import TextIteratorStreamer as TextIteratorStreamer
from tallow.transformers.generation.streamers import TextStreamer as TextStreamer
from tallow.transformers.pipelines.token_classification import TokenClassificationPipeline as TokenClassificationPipeline
from tallow.transformers.modeling_outputs import TokenClassifierOutput as TokenClassifierOutput
from tallow.transformers.batch_encoding import TokenSpan as TokenSpan
from tallow.transformers.tokenization import TokenizersBackend as TokenizersBackend
from tallow.transformers.generation.warpers import TopHLogitsWarper as TopHLogitsWarper
from tallow.transformers.generation.warpers import TopKLogitsWarper as TopKLogitsWarper
from tallow.transformers.generation.warpers import TopPLogitsWarper as TopPLogitsWarper
from tallow.transformers.trainer import Trainer as Trainer
from tallow.transformers.trainer_callback import TrainerCallback as TrainerCallback
from tallow.transformers.trainer_callback import TrainerControl as TrainerControl
from tallow.transformers.trainer_callback import TrainerState as TrainerState
from tallow.transformers.training_args import TrainingArguments as TrainingArguments
from tallow.transformers.pipelines.text_to_text import TranslationPipeline as TranslationPipeline
from tallow.transformers.padding import TruncationStrategy as TruncationStrategy
from tallow.transformers.generation.warpers import TypicalLogitsWarper as TypicalLogitsWarper
from tallow.transformers.generation.guidance import UnbatchedClassifierFreeGuidanceLogitsProcessor as UnbatchedClassifierFreeGuidanceLogitsProcessor
from tallow.transformers.generation.watermarking import WatermarkLogitsProcessor as WatermarkLogitsProcessor
from tallow.transformers.generation.watermarking import WatermarkingConfig as WatermarkingConfig
from tallow.transformers.feature_extraction import WhisperFeatureExtractor as WhisperFeatureExtractor
from tallow.transformers.generation.whisper import WhisperGenerationMixin as WhisperGenerationMixin
from tallow.transformers.processing import WhisperProcessor as WhisperProcessor
from tallow.transformers.generation.whisper import WhisperTimeStampLogitsProcessor as WhisperTimeStampLogitsProcessor
from tallow.transformers.pipelines.text_classification import ZeroShotClassificationPipeline as ZeroShotClassificationPipeline
from tallow.transformers.pipelines.images import ZeroShotImageClassificationPipeline as ZeroShotImageClassificationPipeline
from tallow.transformers import auto_tokenizer as auto_tokenizer
from tallow.transformers import batch_encoding as batch_encoding
from tallow.transformers import cache_utils as cache_utils
from tallow.transformers import configuration as configuration
from tallow.transformers import data_collator as data_collator
from tallow.transformers import data_collator_mlm as data_collator_mlm
from tallow.transformers.data_collator import default_data_collator as default_data_collator
from tallow.transformers.trainer_utils import enable_full_determinism as enable_full_determinism
from tallow.transformers import feature_extraction as feature_extraction
from tallow.transformers import generation as generation
from tallow.transformers.optimization import get_constant_schedule as get_constant_schedule
from tallow.transformers.optimization import get_constant_schedule_with_warmup as get_constant_schedule_with_warmup
from tallow.transformers.optimization import get_cosine_schedule_with_warmup as get_cosine_schedule_with_warmup
from tallow.transformers.optimization import get_cosine_with_hard_restarts_schedule_with_warmup as get_cosine_with_hard_restarts_schedule_with_warmup
from tallow.transformers.optimization import get_cosine_with_min_lr_schedule_with_warmup as get_cosine_with_min_lr_schedule_with_warmup
from tallow.transformers.optimization import get_cosine_with_min_lr_schedule_with_warmup_lr_rate as get_cosine_with_min_lr_schedule_with_warmup_lr_rate
from tallow.transformers.optimization import get_inverse_sqrt_schedule as get_inverse_sqrt_schedule
from tallow.transformers.optimization import get_linear_schedule_with_warmup as get_linear_schedule_with_warmup
from tallow.transformers.optimization import get_polynomial_decay_schedule_with_warmup as get_polynomial_decay_schedule_with_warmup
from tallow.transformers.optimization import get_reduce_on_plateau_schedule as get_reduce_on_plateau_schedule
from tallow.transformers.optimization import get_scheduler as get_scheduler
from tallow.transformers.optimization import get_wsd_schedule as get_wsd_schedule
from tallow.transformers import image_processing as image_processing
from tallow.transformers.utils import is_datasets_available as is_datasets_available
from tallow.transformers.utils import is_flash_attn_2_available as is_flash_attn_2_available
from tallow.transformers.utils import is_flax_available as is_flax_available
from tallow.transformers.utils import is_sentencepiece_available as is_sentencepiece_available
from tallow.transformers.utils import is_tf_available as is_tf_available
from tallow.transformers.utils import is_tokenizers_available as is_tokenizers_available
from tallow.transformers.utils import is_torch_available as is_torch_available
from tallow.transformers.utils import is_vision_available as is_vision_available
from tallow.transformers import logging as logging
from tallow.transformers import modeling as modeling
from tallow.transformers import modeling_outputs as modeling_outputs
from tallow.transformers import optimization as optimization
from tallow.transformers import padding as padding
from tallow.transformers.pipelines.factory import pipeline as pipeline
from tallow.transformers import pipelines as pipelines
from tallow.transformers import preprocessing as preprocessing
from tallow.transformers import processing as processing
from tallow.transformers import quantization_config as quantization_config
from tallow.transformers.trainer_utils import set_seed as set_seed
from tallow.transformers import tensor_types as tensor_types
from tallow.transformers import tokenization as tokenization
from tallow.transformers import tokenization_files as tokenization_files
from tallow.transformers import trainer as trainer
from tallow.transformers import trainer_callback as trainer_callback
from tallow.transformers import trainer_progress as trainer_progress
from tallow.transformers import trainer_seq2seq as trainer_seq2seq
from tallow.transformers import trainer_utils as trainer_utils
from tallow.transformers import training_args as training_args
from tallow.transformers import utils as utils
from tallow.transformers.generation.stopping_criteria import validate_stopping_criteria as validate_stopping_criteria

class AlbertConfig(_PreTrainedConfig): ...
class AlbertForMaskedLM(_PreTrainedModel): ...
class AlbertForMultipleChoice(_PreTrainedModel): ...
class AlbertForQuestionAnswering(_PreTrainedModel): ...
class AlbertForSequenceClassification(_PreTrainedModel): ...
class AlbertForTokenClassification(_PreTrainedModel): ...
class AlbertModel(_PreTrainedModel): ...
class AutoModel(_AutoClass): ...
class AutoModelForAudioClassification(_AutoClass): ...
class AutoModelForCausalLM(_AutoClass): ...
class AutoModelForImageClassification(_AutoClass): ...
class AutoModelForMaskedLM(_AutoClass): ...
class AutoModelForMultipleChoice(_AutoClass): ...
class AutoModelForNextSentencePrediction(_AutoClass): ...
class AutoModelForPreTraining(_AutoClass): ...
class AutoModelForQuestionAnswering(_AutoClass): ...
class AutoModelForSeq2SeqLM(_AutoClass): ...
class AutoModelForSequenceClassification(_AutoClass): ...
class AutoModelForSpeechSeq2Seq(_AutoClass): ...
class AutoModelForTextEncoding(_AutoClass): ...
class AutoModelForTokenClassification(_AutoClass): ...
class AutoModelForZeroShotImageClassification(_AutoClass): ...
class BartConfig(_PreTrainedConfig): ...
class BartForConditionalGeneration(_PreTrainedModel): ...
class BartForQuestionAnswering(_PreTrainedModel): ...
class BartForSequenceClassification(_PreTrainedModel): ...
class BartModel(_PreTrainedModel): ...
class BertConfig(_PreTrainedConfig): ...
class BertForMaskedLM(_PreTrainedModel): ...
class BertForMultipleChoice(_PreTrainedModel): ...
class BertForNextSentencePrediction(_PreTrainedModel): ...
class BertForPreTraining(_PreTrainedModel): ...
class BertForQuestionAnswering(_PreTrainedModel): ...
class BertForSequenceClassification(_PreTrainedModel): ...
class BertForTokenClassification(_PreTrainedModel): ...
class BertLMHeadModel(_PreTrainedModel): ...
class BertModel(_PreTrainedModel): ...
class CLIPConfig(_PreTrainedConfig): ...
class CLIPModel(_PreTrainedModel): ...
class CLIPTextConfig(_PreTrainedConfig): ...
class CLIPTextModel(_PreTrainedModel): ...
class CLIPTextModelWithProjection(_PreTrainedModel): ...
class CLIPVisionConfig(_PreTrainedConfig): ...
class CLIPVisionModel(_PreTrainedModel): ...
class CLIPVisionModelWithProjection(_PreTrainedModel): ...
class CamembertConfig(_PreTrainedConfig): ...
class CamembertForCausalLM(_PreTrainedModel): ...
class CamembertForMaskedLM(_PreTrainedModel): ...
class CamembertForMultipleChoice(_PreTrainedModel): ...
class CamembertForQuestionAnswering(_PreTrainedModel): ...
class CamembertForSequenceClassification(_PreTrainedModel): ...
class CamembertForTokenClassification(_PreTrainedModel): ...
class CamembertModel(_PreTrainedModel): ...
class Dinov2Config(_PreTrainedConfig): ...
class Dinov2ForImageClassification(_PreTrainedModel): ...
class Dinov2Model(_PreTrainedModel): ...
class DistilBertConfig(_PreTrainedConfig): ...
class DistilBertForMaskedLM(_PreTrainedModel): ...
class DistilBertForMultipleChoice(_PreTrainedModel): ...
class DistilBertForQuestionAnswering(_PreTrainedModel): ...
class DistilBertForSequenceClassification(_PreTrainedModel): ...
class DistilBertForTokenClassification(_PreTrainedModel): ...
class DistilBertModel(_PreTrainedModel): ...
class ElectraConfig(_PreTrainedConfig): ...
class ElectraForMaskedLM(_PreTrainedModel): ...
class ElectraForPreTraining(_PreTrainedModel): ...
class ElectraForQuestionAnswering(_PreTrainedModel): ...
class ElectraForSequenceClassification(_PreTrainedModel): ...
class ElectraForTokenClassification(_PreTrainedModel): ...
class ElectraModel(_PreTrainedModel): ...
class ErnieConfig(_PreTrainedConfig): ...
class ErnieForMaskedLM(_PreTrainedModel): ...
class ErnieForMultipleChoice(_PreTrainedModel): ...
class ErnieForQuestionAnswering(_PreTrainedModel): ...
class ErnieForSequenceClassification(_PreTrainedModel): ...
class ErnieForTokenClassification(_PreTrainedModel): ...
class ErnieModel(_PreTrainedModel): ...
class FalconConfig(_PreTrainedConfig): ...
class FalconForCausalLM(_PreTrainedModel): ...
class FalconForQuestionAnswering(_PreTrainedModel): ...
class FalconForSequenceClassification(_PreTrainedModel): ...
class FalconForTokenClassification(_PreTrainedModel): ...
class FalconModel(_PreTrainedModel): ...
class GPT2Config(_PreTrainedConfig): ...
class GPT2ForQuestionAnswering(_PreTrainedModel): ...
class GPT2ForSequenceClassification(_PreTrainedModel): ...
class GPT2ForTokenClassification(_PreTrainedModel): ...
class GPT2LMHeadModel(_PreTrainedModel): ...
class GPT2Model(_PreTrainedModel): ...
class Gemma2Config(_PreTrainedConfig): ...
class Gemma2ForCausalLM(_PreTrainedModel): ...
class Gemma2ForSequenceClassification(_PreTrainedModel): ...
class Gemma2ForTokenClassification(_PreTrainedModel): ...
class Gemma2Model(_PreTrainedModel): ...
class Gemma3ForCausalLM(_PreTrainedModel): ...
class Gemma3TextConfig(_PreTrainedConfig): ...
class Gemma3TextForSequenceClassification(_PreTrainedModel): ...
class Gemma3TextModel(_PreTrainedModel): ...
class GemmaConfig(_PreTrainedConfig): ...
class GemmaForCausalLM(_PreTrainedModel): ...
class GemmaForSequenceClassification(_PreTrainedModel): ...
class GemmaForTokenClassification(_PreTrainedModel): ...
class GemmaModel(_PreTrainedModel): ...
class Lfm2Config(_PreTrainedConfig): ...
class Lfm2ForCausalLM(_PreTrainedModel): ...
class Lfm2Model(_PreTrainedModel): ...
class Lfm2MoeConfig(_PreTrainedConfig): ...
class Lfm2MoeForCausalLM(_PreTrainedModel): ...
class Lfm2MoeModel(_PreTrainedModel): ...
class LlamaConfig(_PreTrainedConfig): ...
class LlamaForCausalLM(_PreTrainedModel): ...
class LlamaForQuestionAnswering(_PreTrainedModel): ...
class LlamaForSequenceClassification(_PreTrainedModel): ...
class LlamaForTokenClassification(_PreTrainedModel): ...
class LlamaModel(_PreTrainedModel): ...
class MPNetConfig(_PreTrainedConfig): ...
class MPNetForMaskedLM(_PreTrainedModel): ...
class MPNetForMultipleChoice(_PreTrainedModel): ...
class MPNetForQuestionAnswering(_PreTrainedModel): ...
class MPNetForSequenceClassification(_PreTrainedModel): ...
class MPNetForTokenClassification(_PreTrainedModel): ...
class MPNetModel(_PreTrainedModel): ...
class MarianConfig(_PreTrainedConfig): ...
class MarianMTModel(_PreTrainedModel): ...
class MarianModel(_PreTrainedModel): ...
class MistralConfig(_PreTrainedConfig): ...
class MistralForCausalLM(_PreTrainedModel): ...
class MistralForQuestionAnswering(_PreTrainedModel): ...
class MistralForSequenceClassification(_PreTrainedModel): ...
class MistralForTokenClassification(_PreTrainedModel): ...
class MistralModel(_PreTrainedModel): ...
class MixtralConfig(_PreTrainedConfig): ...
class MixtralForCausalLM(_PreTrainedModel): ...
class MixtralForQuestionAnswering(_PreTrainedModel): ...
class MixtralForSequenceClassification(_PreTrainedModel): ...
class MixtralForTokenClassification(_PreTrainedModel): ...
class MixtralModel(_PreTrainedModel): ...
class ModernBertConfig(_PreTrainedConfig): ...
class ModernBertForMaskedLM(_PreTrainedModel): ...
class ModernBertForMultipleChoice(_PreTrainedModel): ...
class ModernBertForQuestionAnswering(_PreTrainedModel): ...
class ModernBertForSequenceClassification(_PreTrainedModel): ...
class ModernBertForTokenClassification(_PreTrainedModel): ...
class ModernBertModel(_PreTrainedModel): ...
class OlmoeConfig(_PreTrainedConfig): ...
class OlmoeForCausalLM(_PreTrainedModel): ...
class OlmoeModel(_PreTrainedModel): ...
class Phi3Config(_PreTrainedConfig): ...
class Phi3ForCausalLM(_PreTrainedModel): ...
class Phi3ForSequenceClassification(_PreTrainedModel): ...
class Phi3ForTokenClassification(_PreTrainedModel): ...
class Phi3Model(_PreTrainedModel): ...
class Qwen2Config(_PreTrainedConfig): ...
class Qwen2ForCausalLM(_PreTrainedModel): ...
class Qwen2ForQuestionAnswering(_PreTrainedModel): ...
class Qwen2ForSequenceClassification(_PreTrainedModel): ...
class Qwen2ForTokenClassification(_PreTrainedModel): ...
class Qwen2Model(_PreTrainedModel): ...
class Qwen2MoeConfig(_PreTrainedConfig): ...
class Qwen2MoeForCausalLM(_PreTrainedModel): ...
class Qwen2MoeForQuestionAnswering(_PreTrainedModel): ...
class Qwen2MoeForSequenceClassification(_PreTrainedModel): ...
class Qwen2MoeForTokenClassification(_PreTrainedModel): ...
class Qwen2MoeModel(_PreTrainedModel): ...
class Qwen3Config(_PreTrainedConfig): ...
class Qwen3ForCausalLM(_PreTrainedModel): ...
class Qwen3ForQuestionAnswering(_PreTrainedModel): ...
class Qwen3ForSequenceClassification(_PreTrainedModel): ...
class Qwen3ForTokenClassification(_PreTrainedModel): ...
class Qwen3Model(_PreTrainedModel): ...
class Qwen3MoeConfig(_PreTrainedConfig): ...
class Qwen3MoeForCausalLM(_PreTrainedModel): ...
class Qwen3MoeForQuestionAnswering(_PreTrainedModel): ...
class Qwen3MoeForSequenceClassification(_PreTrainedModel): ...
class Qwen3MoeForTokenClassification(_PreTrainedModel): ...
class Qwen3MoeModel(_PreTrainedModel): ...
class RWForCausalLM(_PreTrainedModel): ...
class RobertaConfig(_PreTrainedConfig): ...
class RobertaForCausalLM(_PreTrainedModel): ...
class RobertaForMaskedLM(_PreTrainedModel): ...
class RobertaForMultipleChoice(_PreTrainedModel): ...
class RobertaForQuestionAnswering(_PreTrainedModel): ...
class RobertaForSequenceClassification(_PreTrainedModel): ...
class RobertaForTokenClassification(_PreTrainedModel): ...
class RobertaModel(_PreTrainedModel): ...
class T5Config(_PreTrainedConfig): ...
class T5EncoderModel(_PreTrainedModel): ...
class T5ForConditionalGeneration(_PreTrainedModel): ...
class T5ForQuestionAnswering(_PreTrainedModel): ...
class T5ForSequenceClassification(_PreTrainedModel): ...
class T5ForTokenClassification(_PreTrainedModel): ...
class T5Model(_PreTrainedModel): ...
class T5WithLMHeadModel(_PreTrainedModel): ...
class ViTConfig(_PreTrainedConfig): ...
class ViTForImageClassification(_PreTrainedModel): ...
class ViTModel(_PreTrainedModel): ...
class WhisperConfig(_PreTrainedConfig): ...
class WhisperForAudioClassification(_PreTrainedModel): ...
class WhisperForConditionalGeneration(_PreTrainedModel): ...
class WhisperModel(_PreTrainedModel): ...
class XLMRobertaConfig(_PreTrainedConfig): ...
class XLMRobertaForCausalLM(_PreTrainedModel): ...
class XLMRobertaForMaskedLM(_PreTrainedModel): ...
class XLMRobertaForMultipleChoice(_PreTrainedModel): ...
class XLMRobertaForQuestionAnswering(_PreTrainedModel): ...
class XLMRobertaForSequenceClassification(_PreTrainedModel): ...
class XLMRobertaForTokenClassification(_PreTrainedModel): ...
class XLMRobertaModel(_PreTrainedModel): ...
__all__ = [
    "Adafactor",
    "AddedToken",
    "AggregationStrategy",
    "AlbertConfig",
    "AlbertForMaskedLM",
    "AlbertForMultipleChoice",
    "AlbertForQuestionAnswering",
    "AlbertForSequenceClassification",
    "AlbertForTokenClassification",
    "AlbertModel",
    "AlternatingCodebooksLogitsProcessor",
    "AsyncTextIteratorStreamer",
    "AutoConfig",
    "AutoFeatureExtractor",
    "AutoImageProcessor",
    "AutoModel",
    "AutoModelForAudioClassification",
    "AutoModelForCausalLM",
    "AutoModelForImageClassification",
    "AutoModelForMaskedLM",
    "AutoModelForMultipleChoice",
    "AutoModelForNextSentencePrediction",
    "AutoModelForPreTraining",
    "AutoModelForQuestionAnswering",
    "AutoModelForSeq2SeqLM",
    "AutoModelForSequenceClassification",
    "AutoModelForSpeechSeq2Seq",
    "AutoModelForTextEncoding",
    "AutoModelForTokenClassification",
    "AutoModelForZeroShotImageClassification",
    "AutoProcessor",
    "AutoTokenizer",
    "AutomaticSpeechRecognitionPipeline",
    "BartConfig",
    "BartForConditionalGeneration",
    "BartForQuestionAnswering",
    "BartForSequenceClassification",
    "BartModel",
    "BaseImageProcessor",
    "BaseModelOutput",
    "BaseModelOutputWithPast",
    "BaseModelOutputWithPastAndCrossAttentions",
    "BaseModelOutputWithPooling",
    "BaseModelOutputWithPoolingAndCrossAttentions",
    "BaseStreamer",
    "BaseWatermarkingConfig",
    "BatchEncoding",
    "BatchFeature",
    "BertConfig",
    "BertForMaskedLM",
    "BertForMultipleChoice",
    "BertForNextSentencePrediction",
    "BertForPreTraining",
    "BertForQuestionAnswering",
    "BertForSequenceClassification",
    "BertForTokenClassification",
    "BertLMHeadModel",
    "BertModel",
    "BitsAndBytesConfig",
    "CLIPConfig",
    "CLIPModel",
    "CLIPProcessor",
    "CLIPTextConfig",
    "CLIPTextModel",
    "CLIPTextModelWithProjection",
    "CLIPVisionConfig",
    "CLIPVisionModel",
    "CLIPVisionModelWithProjection",
    "Cache",
    "CamembertConfig",
    "CamembertForCausalLM",
    "CamembertForMaskedLM",
    "CamembertForMultipleChoice",
    "CamembertForQuestionAnswering",
    "CamembertForSequenceClassification",
    "CamembertForTokenClassification",
    "CamembertModel",
    "CausalLMOutput",
    "CausalLMOutputWithCrossAttentions",
    "CausalLMOutputWithPast",
    "CharSpan",
    "ChunkPipeline",
    "ClassifierFreeGuidanceLogitsProcessor",
    "DataCollatorForLanguageModeling",
    "DataCollatorForMultipleChoice",
    "DataCollatorForSeq2Seq",
    "DataCollatorForTokenClassification",
    "DataCollatorWithFlattening",
    "DataCollatorWithPadding",
    "DefaultDataCollator",
    "DefaultFlowCallback",
    "Dinov2Config",
    "Dinov2ForImageClassification",
    "Dinov2Model",
    "DistilBertConfig",
    "DistilBertForMaskedLM",
    "DistilBertForMultipleChoice",
    "DistilBertForQuestionAnswering",
    "DistilBertForSequenceClassification",
    "DistilBertForTokenClassification",
    "DistilBertModel",
    "DynamicCache",
    "EarlyStoppingCallback",
    "ElectraConfig",
    "ElectraForMaskedLM",
    "ElectraForPreTraining",
    "ElectraForQuestionAnswering",
    "ElectraForSequenceClassification",
    "ElectraForTokenClassification",
    "ElectraModel",
    "EncoderDecoderCache",
    "EncoderNoRepeatNGramLogitsProcessor",
    "EncoderRepetitionPenaltyLogitsProcessor",
    "EosTokenCriteria",
    "EpsilonLogitsWarper",
    "ErnieConfig",
    "ErnieForMaskedLM",
    "ErnieForMultipleChoice",
    "ErnieForQuestionAnswering",
    "ErnieForSequenceClassification",
    "ErnieForTokenClassification",
    "ErnieModel",
    "EtaLogitsWarper",
    "EvalPrediction",
    "ExponentialDecayLengthPenalty",
    "FalconConfig",
    "FalconForCausalLM",
    "FalconForQuestionAnswering",
    "FalconForSequenceClassification",
    "FalconForTokenClassification",
    "FalconModel",
    "FeatureExtractionPipeline",
    "FillMaskPipeline",
    "ForcedBOSTokenLogitsProcessor",
    "ForcedEOSTokenLogitsProcessor",
    "GPT2Config",
    "GPT2ForQuestionAnswering",
    "GPT2ForSequenceClassification",
    "GPT2ForTokenClassification",
    "GPT2LMHeadModel",
    "GPT2Model",
    "Gemma2Config",
    "Gemma2ForCausalLM",
    "Gemma2ForSequenceClassification",
    "Gemma2ForTokenClassification",
    "Gemma2Model",
    "Gemma3ForCausalLM",
    "Gemma3TextConfig",
    "Gemma3TextForSequenceClassification",
    "Gemma3TextModel",
    "GemmaConfig",
    "GemmaForCausalLM",
    "GemmaForSequenceClassification",
    "GemmaForTokenClassification",
    "GemmaModel",
    "GenerateBeamDecoderOnlyOutput",
    "GenerateBeamEncoderDecoderOutput",
    "GenerateDecoderOnlyOutput",
    "GenerateEncoderDecoderOutput",
    "GenerationConfig",
    "GenerationMixin",
    "GenerationMode",
    "ImageClassificationPipeline",
    "ImageClassifierOutput",
    "ImageFeatureExtractionPipeline",
    "InfNanRemoveLogitsProcessor",
    "IntervalStrategy",
    "Lfm2Config",
    "Lfm2ForCausalLM",
    "Lfm2Model",
    "Lfm2MoeConfig",
    "Lfm2MoeForCausalLM",
    "Lfm2MoeModel",
    "LlamaConfig",
    "LlamaForCausalLM",
    "LlamaForQuestionAnswering",
    "LlamaForSequenceClassification",
    "LlamaForTokenClassification",
    "LlamaModel",
    "LogitNormalization",
    "LogitsProcessor",
    "LogitsProcessorList",
    "MPNetConfig",
    "MPNetForMaskedLM",
    "MPNetForMultipleChoice",
    "MPNetForQuestionAnswering",
    "MPNetForSequenceClassification",
    "MPNetForTokenClassification",
    "MPNetModel",
    "MarianConfig",
    "MarianMTModel",
    "MarianModel",
    "MaskedLMOutput",
    "MaxLengthCriteria",
    "MaxTimeCriteria",
    "MinLengthLogitsProcessor",
    "MinNewTokensLengthLogitsProcessor",
    "MinPLogitsWarper",
    "MistralConfig",
    "MistralForCausalLM",
    "MistralForQuestionAnswering",
    "MistralForSequenceClassification",
    "MistralForTokenClassification",
    "MistralModel",
    "MixtralConfig",
    "MixtralForCausalLM",
    "MixtralForQuestionAnswering",
    "MixtralForSequenceClassification",
    "MixtralForTokenClassification",
    "MixtralModel",
    "ModelOutput",
    "ModernBertConfig",
    "ModernBertForMaskedLM",
    "ModernBertForMultipleChoice",
    "ModernBertForQuestionAnswering",
    "ModernBertForSequenceClassification",
    "ModernBertForTokenClassification",
    "ModernBertModel",
    "MoeCausalLMOutputWithPast",
    "MoeModelOutputWithPast",
    "MultipleChoiceModelOutput",
    "NerPipeline",
    "NextSentencePredictorOutput",
    "NoBadWordsLogitsProcessor",
    "NoRepeatNGramLogitsProcessor",
    "OlmoeConfig",
    "OlmoeForCausalLM",
    "OlmoeModel",
    "PaddingStrategy",
    "Phi3Config",
    "Phi3ForCausalLM",
    "Phi3ForSequenceClassification",
    "Phi3ForTokenClassification",
    "Phi3Model",
    "Pipeline",
    "PreTrainedConfig",
    "PreTrainedModel",
    "PreTrainedTokenizer",
    "PreTrainedTokenizerBase",
    "PreTrainedTokenizerFast",
    "PrefixConstrainedLogitsProcessor",
    "PretrainedConfig",
    "PrinterCallback",
    "ProcessorMixin",
    "ProgressCallback",
    "QuantizedCache",
    "QuestionAnsweringModelOutput",
    "QuestionAnsweringPipeline",
    "Qwen2Config",
    "Qwen2ForCausalLM",
    "Qwen2ForQuestionAnswering",
    "Qwen2ForSequenceClassification",
    "Qwen2ForTokenClassification",
    "Qwen2Model",
    "Qwen2MoeConfig",
    "Qwen2MoeForCausalLM",
    "Qwen2MoeForQuestionAnswering",
    "Qwen2MoeForSequenceClassification",
    "Qwen2MoeForTokenClassification",
    "Qwen2MoeModel",
    "Qwen3Config",
    "Qwen3ForCausalLM",
    "Qwen3ForQuestionAnswering",
    "Qwen3ForSequenceClassification",
    "Qwen3ForTokenClassification",
    "Qwen3Model",
    "Qwen3MoeConfig",
    "Qwen3MoeForCausalLM",
    "Qwen3MoeForQuestionAnswering",
    "Qwen3MoeForSequenceClassification",
    "Qwen3MoeForTokenClassification",
    "Qwen3MoeModel",
    "RWForCausalLM",
    "RepetitionPenaltyLogitsProcessor",
    "RobertaConfig",
    "RobertaForCausalLM",
    "RobertaForMaskedLM",
    "RobertaForMultipleChoice",
    "RobertaForQuestionAnswering",
    "RobertaForSequenceClassification",
    "RobertaForTokenClassification",
    "RobertaModel",
    "SchedulerType",
    "Seq2SeqLMOutput",
    "Seq2SeqModelOutput",
    "Seq2SeqQuestionAnsweringModelOutput",
    "Seq2SeqSequenceClassifierOutput",
    "Seq2SeqTrainer",
    "Seq2SeqTrainingArguments",
    "SequenceBiasLogitsProcessor",
    "SequenceClassifierOutput",
    "SequenceClassifierOutputWithPast",
    "StaticCache",
    "StopStringCriteria",
    "StoppingCriteria",
    "StoppingCriteriaList",
    "SummarizationPipeline",
    "SuppressTokensAtBeginLogitsProcessor",
    "SuppressTokensLogitsProcessor",
    "SynthIDTextWatermarkLogitsProcessor",
    "SynthIDTextWatermarkingConfig",
    "T5Config",
    "T5EncoderModel",
    "T5ForConditionalGeneration",
    "T5ForQuestionAnswering",
    "T5ForSequenceClassification",
    "T5ForTokenClassification",
    "T5Model",
    "T5WithLMHeadModel",
    "TemperatureLogitsWarper",
    "TensorType",
    "Text2TextGenerationPipeline",
    "TextClassificationPipeline",
    "TextGenerationPipeline",
    "TextIteratorStreamer",
    "TextStreamer",
    "TokenClassificationPipeline",
    "TokenClassifierOutput",
    "TokenSpan",
    "TokenizersBackend",
    "TopHLogitsWarper",
    "TopKLogitsWarper",
    "TopPLogitsWarper",
    "Trainer",
    "TrainerCallback",
    "TrainerControl",
    "TrainerState",
    "TrainingArguments",
    "TranslationPipeline",
    "TruncationStrategy",
    "TypicalLogitsWarper",
    "UnbatchedClassifierFreeGuidanceLogitsProcessor",
    "ViTConfig",
    "ViTForImageClassification",
    "ViTModel",
    "WatermarkLogitsProcessor",
    "WatermarkingConfig",
    "WhisperConfig",
    "WhisperFeatureExtractor",
    "WhisperForAudioClassification",
    "WhisperForConditionalGeneration",
    "WhisperGenerationMixin",
    "WhisperModel",
    "WhisperProcessor",
    "WhisperTimeStampLogitsProcessor",
    "XLMRobertaConfig",
    "XLMRobertaForCausalLM",
    "XLMRobertaForMaskedLM",
    "XLMRobertaForMultipleChoice",
    "XLMRobertaForQuestionAnswering",
    "XLMRobertaForSequenceClassification",
    "XLMRobertaForTokenClassification",
    "XLMRobertaModel",
    "ZeroShotClassificationPipeline",
    "ZeroShotImageClassificationPipeline",
    "auto_tokenizer",
    "batch_encoding",
    "cache_utils",
    "configuration",
    "data_collator",
    "data_collator_mlm",
    "default_data_collator",
    "enable_full_determinism",
    "feature_extraction",
    "generation",
    "get_constant_schedule",
    "get_constant_schedule_with_warmup",
    "get_cosine_schedule_with_warmup",
    "get_cosine_with_hard_restarts_schedule_with_warmup",
    "get_cosine_with_min_lr_schedule_with_warmup",
    "get_cosine_with_min_lr_schedule_with_warmup_lr_rate",
    "get_inverse_sqrt_schedule",
    "get_linear_schedule_with_warmup",
    "get_polynomial_decay_schedule_with_warmup",
    "get_reduce_on_plateau_schedule",
    "get_scheduler",
    "get_wsd_schedule",
    "image_processing",
    "is_datasets_available",
    "is_flash_attn_2_available",
    "is_flax_available",
    "is_sentencepiece_available",
    "is_tf_available",
    "is_tokenizers_available",
    "is_torch_available",
    "is_vision_available",
    "logging",
    "modeling",
    "modeling_outputs",
    "optimization",
    "padding",
    "pipeline",
    "pipelines",
    "preprocessing",
    "processing",
    "quantization_config",
    "set_seed",
    "tensor_types",
    "tokenization",
    "tokenization_files",
    "trainer",
    "trainer_callback",
    "trainer_progress",
    "trainer_seq2seq",
    "trainer_utils",
    "training_args",
    "utils",
    "validate_stopping_criteria",
]
