"""Names that a package imports on first use. Written by scripts/build_stubs.py."""

from tallow.models.encoders.albert import AlbertConfig as AlbertConfig
from tallow.models.encoders.albert import AlbertForMaskedLM as AlbertForMaskedLM
from tallow.models.encoders.albert import AlbertPretrainedModel as _AlbertPretrainedModel
from tallow.models.encoders.albert import AlbertModel as AlbertModel
from tallow.models.auto import AutoModel as AutoModel
from tallow.models.seq2seq.bart import BartConfig as BartConfig
from tallow.models.seq2seq.bart import BartForConditionalGeneration as BartForConditionalGeneration
from tallow.models.seq2seq.pair_heads import BartForQuestionAnswering as BartForQuestionAnswering
from tallow.models.seq2seq.pair_heads import BartForSequenceClassification as BartForSequenceClassification
from tallow.models.encoders.bert_layers import BertConfig as BertConfig
from tallow.models.encoders.bert import BertForMaskedLM as BertForMaskedLM
from tallow.models.encoders.bert import BertForSequenceClassification as _BertForSequenceClassification
from tallow.models.encoders.bert import BertForNextSentencePrediction as BertForNextSentencePrediction
from tallow.models.encoders.bert import BertForPreTraining as BertForPreTraining
from tallow.models.encoders.bert import BertForQuestionAnswering as BertForQuestionAnswering
from tallow.models.encoders.bert import BertForSequenceClassification as BertForSequenceClassification
from tallow.models.encoders.bert import BertForTokenClassification as BertForTokenClassification
from tallow.models.encoders.bert import BertLMHeadModel as BertLMHeadModel
from tallow.models.encoders.bert import BertModel as BertModel
from tallow.models.vision.clip import CLIPConfig as CLIPConfig
from tallow.models.vision.clip import CLIPModel as CLIPModel
from tallow.models.vision.clip import CLIPTextConfig as CLIPTextConfig
from tallow.models.vision.clip import CLIPTextModel as CLIPTextModel
from tallow.models.vision.clip import CLIPTextModelWithProjection as CLIPTextModelWithProjection
from tallow.models.vision.clip import CLIPVisionConfig as CLIPVisionConfig
from tallow.models.vision.clip import CLIPVisionModel as CLIPVisionModel
from tallow.models.vision.clip import CLIPVisionModelWithProjection as CLIPVisionModelWithProjection
from tallow.models.vision.dinov2 import Dinov2Config as Dinov2Config
from tallow.models.vision.dinov2 import Dinov2ForImageClassification as Dinov2ForImageClassification
from tallow.models.vision.dinov2 import Dinov2Model as Dinov2Model
from tallow.models.encoders.distilbert import DistilBertConfig as DistilBertConfig
from tallow.models.encoders.distilbert import DistilBertForMaskedLM as DistilBertForMaskedLM
from tallow.models.encoders.distilbert import DistilBertForSequenceClassification as _DistilBertForSequenceClassification
from tallow.models.encoders.distilbert import DistilBertForQuestionAnswering as DistilBertForQuestionAnswering
from tallow.models.encoders.distilbert import DistilBertForSequenceClassification as DistilBertForSequenceClassification
from tallow.models.encoders.distilbert import DistilBertForTokenClassification as DistilBertForTokenClassification
from tallow.models.encoders.distilbert import DistilBertModel as DistilBertModel
from tallow.models.encoders.electra import ElectraConfig as ElectraConfig
from tallow.models.encoders.electra import ElectraForMaskedLM as ElectraForMaskedLM
from tallow.models.encoders.electra import ElectraForPreTraining as ElectraForPreTraining
from tallow.models.encoders.electra import ElectraPretrainedModel as _ElectraPretrainedModel
from tallow.models.encoders.electra import ElectraForSequenceClassification as ElectraForSequenceClassification
from tallow.models.encoders.electra import ElectraModel as ElectraModel
from tallow.models.encoders.ernie import ErnieConfig as ErnieConfig
from tallow.models.encoders.ernie import ErniePretrainedModel as _ErniePretrainedModel
from tallow.models.encoders.ernie import ErnieModel as ErnieModel
from tallow.models.decoders.falcon import Falcon as Falcon
from tallow.models.decoders.falcon import FalconConfig as FalconConfig
from tallow.models.decoders.falcon import FalconForQuestionAnswering as FalconForQuestionAnswering
from tallow.models.decoders.falcon import FalconForSequenceClassification as FalconForSequenceClassification
from tallow.models.decoders.falcon import FalconForTokenClassification as FalconForTokenClassification
from tallow.models.decoders.falcon import FalconModel as FalconModel
from tallow.models.decoders.gpt2 import GPT2 as GPT2
from tallow.models.decoders.gpt2 import GPT2Config as GPT2Config
from tallow.models.decoders.gpt2 import GPT2ForQuestionAnswering as GPT2ForQuestionAnswering
from tallow.models.decoders.gpt2 import GPT2ForSequenceClassification as GPT2ForSequenceClassification
from tallow.models.decoders.gpt2 import GPT2ForTokenClassification as GPT2ForTokenClassification
from tallow.models.decoders.gpt2 import GPT2Model as GPT2Model
from tallow.models.decoders.gemma import Gemma as Gemma
from tallow.models.decoders.gemma2 import Gemma2 as Gemma2
from tallow.models.decoders.gemma2 import Gemma2Config as Gemma2Config
from tallow.models.decoders.gemma2 import Gemma2ForSequenceClassification as Gemma2ForSequenceClassification
from tallow.models.decoders.gemma2 import Gemma2ForTokenClassification as Gemma2ForTokenClassification
from tallow.models.decoders.gemma2 import Gemma2Model as Gemma2Model
from tallow.models.decoders.gemma3 import Gemma3 as Gemma3
from tallow.models.decoders.gemma3 import Gemma3Config as Gemma3Config
from tallow.models.decoders.gemma3 import Gemma3TextForSequenceClassification as Gemma3TextForSequenceClassification
from tallow.models.decoders.gemma3 import Gemma3TextModel as Gemma3TextModel
from tallow.models.decoders.gemma import GemmaConfig as GemmaConfig
from tallow.models.decoders.gemma import GemmaForSequenceClassification as GemmaForSequenceClassification
from tallow.models.decoders.gemma import GemmaForTokenClassification as GemmaForTokenClassification
from tallow.models.decoders.gemma import GemmaModel as GemmaModel
from tallow.models.vision.images import ImageClassifier as ImageClassifier
from tallow.models.vision.images import ImageEncoder as ImageEncoder
from tallow.models.vision.image_processor import ImageProcessor as ImageProcessor
from tallow.models.decoders.lfm2 import Lfm2 as Lfm2
from tallow.models.decoders.lfm2 import Lfm2Config as Lfm2Config
from tallow.models.decoders.lfm2 import Lfm2Model as Lfm2Model
from tallow.models.decoders.lfm2_moe import Lfm2Moe as Lfm2Moe
from tallow.models.decoders.lfm2_moe import Lfm2MoeConfig as Lfm2MoeConfig
from tallow.models.decoders.lfm2_moe import Lfm2MoeModel as Lfm2MoeModel
from tallow.models.decoders.llama import Llama as Llama
from tallow.models.decoders.llama import LlamaConfig as LlamaConfig
from tallow.models.decoders.llama import LlamaForQuestionAnswering as LlamaForQuestionAnswering
from tallow.models.decoders.llama import LlamaForSequenceClassification as LlamaForSequenceClassification
from tallow.models.decoders.llama import LlamaForTokenClassification as LlamaForTokenClassification
from tallow.models.decoders.llama import LlamaModel as LlamaModel
from tallow.models.encoders.mpnet import MPNetConfig as MPNetConfig
from tallow.models.encoders.mpnet import MPNetPretrainedModel as _MPNetPretrainedModel
from tallow.models.encoders.mpnet import MPNetModel as MPNetModel
from tallow.models.seq2seq.marian import MarianConfig as MarianConfig
from tallow.models.seq2seq.marian import MarianMTModel as MarianMTModel
from tallow.models.decoders.mistral import Mistral as Mistral
from tallow.models.decoders.mistral import MistralConfig as MistralConfig
from tallow.models.decoders.mistral import MistralForQuestionAnswering as MistralForQuestionAnswering
from tallow.models.decoders.mistral import MistralForSequenceClassification as MistralForSequenceClassification
from tallow.models.decoders.mistral import MistralForTokenClassification as MistralForTokenClassification
from tallow.models.decoders.mistral import MistralModel as MistralModel
from tallow.models.decoders.mixtral import Mixtral as Mixtral
from tallow.models.decoders.mixtral import MixtralConfig as MixtralConfig
from tallow.models.decoders.decoder_heads import DecoderForQuestionAnswering as _DecoderForQuestionAnswering
from tallow.models.decoders.decoder_heads import DecoderForSequenceClassification as _DecoderForSequenceClassification
from tallow.models.decoders.decoder_heads import DecoderForTokenClassification as _DecoderForTokenClassification
from tallow.models.decoders.mixtral import MixtralModel as MixtralModel
from tallow.models.encoders.modernbert import ModernBertConfig as ModernBertConfig
from tallow.models.encoders.modernbert import ModernBertForMaskedLM as ModernBertForMaskedLM
from tallow.models.encoders.modernbert import ModernBertForSequenceClassification as _ModernBertForSequenceClassification
from tallow.models.encoders.modernbert import ModernBertForQuestionAnswering as ModernBertForQuestionAnswering
from tallow.models.encoders.modernbert import ModernBertForSequenceClassification as ModernBertForSequenceClassification
from tallow.models.encoders.modernbert import ModernBertForTokenClassification as ModernBertForTokenClassification
from tallow.models.encoders.modernbert import ModernBertModel as ModernBertModel
from tallow.models.decoders.olmoe import Olmoe as Olmoe
from tallow.models.decoders.olmoe import OlmoeConfig as OlmoeConfig
from tallow.models.decoders.olmoe import OlmoeModel as OlmoeModel
from tallow.models.decoders.phi3 import Phi3 as Phi3
from tallow.models.decoders.phi3 import Phi3Config as Phi3Config
from tallow.models.decoders.phi3 import Phi3ForSequenceClassification as Phi3ForSequenceClassification
from tallow.models.decoders.phi3 import Phi3ForTokenClassification as Phi3ForTokenClassification
from tallow.models.decoders.phi3 import Phi3Model as Phi3Model
from tallow.models.decoders.qwen import Qwen2 as Qwen2
from tallow.models.decoders.qwen import Qwen2Config as Qwen2Config
from tallow.models.decoders.qwen import Qwen2ForQuestionAnswering as Qwen2ForQuestionAnswering
from tallow.models.decoders.qwen import Qwen2ForSequenceClassification as Qwen2ForSequenceClassification
from tallow.models.decoders.qwen import Qwen2ForTokenClassification as Qwen2ForTokenClassification
from tallow.models.decoders.qwen import Qwen2Model as Qwen2Model
from tallow.models.decoders.qwen_moe import Qwen2Moe as Qwen2Moe
from tallow.models.decoders.qwen_moe import Qwen2MoeConfig as Qwen2MoeConfig
from tallow.models.decoders.qwen_moe import Qwen2MoeModel as Qwen2MoeModel
from tallow.models.decoders.qwen import Qwen3 as Qwen3
from tallow.models.decoders.qwen import Qwen3Config as Qwen3Config
from tallow.models.decoders.qwen import Qwen3ForQuestionAnswering as Qwen3ForQuestionAnswering
from tallow.models.decoders.qwen import Qwen3ForSequenceClassification as Qwen3ForSequenceClassification
from tallow.models.decoders.qwen import Qwen3ForTokenClassification as Qwen3ForTokenClassification
from tallow.models.decoders.qwen import Qwen3Model as Qwen3Model
from tallow.models.decoders.qwen_moe import Qwen3Moe as Qwen3Moe
from tallow.models.decoders.qwen_moe import Qwen3MoeConfig as Qwen3MoeConfig
from tallow.models.decoders.qwen_moe import Qwen3MoeModel as Qwen3MoeModel
from tallow.models.encoders.roberta import RobertaConfig as RobertaConfig
from tallow.models.encoders.roberta import RobertaForCausalLM as RobertaForCausalLM
from tallow.models.encoders.roberta import RobertaForMaskedLM as RobertaForMaskedLM
from tallow.models.encoders.roberta import RobertaPretrainedModel as _RobertaPretrainedModel
from tallow.models.encoders.roberta import RobertaForQuestionAnswering as RobertaForQuestionAnswering
from tallow.models.encoders.roberta import RobertaForSequenceClassification as RobertaForSequenceClassification
from tallow.models.encoders.roberta import RobertaForTokenClassification as RobertaForTokenClassification
from tallow.models.encoders.roberta import RobertaModel as RobertaModel
from tallow.models.encoders.sentence import SentenceEncoder as SentenceEncoder
from tallow.models.encoders.sparse_encoder import SparseEncoder as SparseEncoder
from tallow.models.seq2seq.t5 import T5Config as T5Config
from tallow.models.seq2seq.t5 import T5EncoderModel as T5EncoderModel
from tallow.models.seq2seq.t5 import T5ForConditionalGeneration as T5ForConditionalGeneration
from tallow.models.seq2seq.pair_heads import T5ForQuestionAnswering as T5ForQuestionAnswering
from tallow.models.seq2seq.pair_heads import T5ForSequenceClassification as T5ForSequenceClassification
from tallow.models.seq2seq.pair_heads import T5ForTokenClassification as T5ForTokenClassification
from tallow.models.encoders.text_classifier import TextClassifier as TextClassifier
from tallow.models.vision.vit import ViTConfig as ViTConfig
from tallow.models.vision.vit import ViTForImageClassification as ViTForImageClassification
from tallow.models.vision.vit import ViTModel as ViTModel
from tallow.models.whisper.model import Whisper as Whisper
from tallow.models.whisper.model import WhisperConfig as WhisperConfig
from tallow.models.whisper.sound_classifier import WhisperForAudioClassification as WhisperForAudioClassification
from tallow.models.encoders import albert as albert
from tallow.models import auto as auto
from tallow.models.seq2seq import bart as bart
from tallow.models.encoders import bert as bert
from tallow.models.vision import clip as clip
from tallow.models import derived_heads as derived_heads
from tallow.models.vision import dinov2 as dinov2
from tallow.models.encoders import distilbert as distilbert
from tallow.models.encoders import electra as electra
from tallow.models.encoders import ernie as ernie
from tallow.models.decoders import falcon as falcon
from tallow.models.decoders import gemma as gemma
from tallow.models.decoders import gemma2 as gemma2
from tallow.models.decoders import gemma3 as gemma3
from tallow.models.gguf import export as gguf_export
from tallow.models.gguf import models as gguf_models
from tallow.models.built_in import glosses as glosses
from tallow.models.decoders import gpt2 as gpt2
from tallow.models.vision import image_processor as image_processor
from tallow.models.vision import images as images
from tallow.models.decoders import lfm2 as lfm2
from tallow.models.decoders import lfm2_moe as lfm2_moe
from tallow.models.decoders import llama as llama
from tallow.models.seq2seq import marian as marian
from tallow.models.decoders import mistral as mistral
from tallow.models.decoders import mixtral as mixtral
from tallow.models.encoders import modernbert as modernbert
from tallow.models.encoders import mpnet as mpnet
from tallow.models.decoders import olmoe as olmoe
from tallow.models.seq2seq import pair_heads as pair_heads
from tallow.models.decoders import phi3 as phi3
from tallow.models.decoders import qwen as qwen
from tallow.models.decoders import qwen_moe as qwen_moe
from tallow.models.encoders import roberta as roberta
from tallow.models.encoders import sentence as sentence
from tallow.models.whisper import sound_classifier as sound_classifier
from tallow.models.encoders import sparse_encoder as sparse_encoder
from tallow.models.built_in import spoken as spoken
from tallow.models.built_in import stories as stories
from tallow.models.seq2seq import t5 as t5
from tallow.models.encoders import text_classifier as text_classifier
from tallow.models.vision import vit as vit
from tallow.models import whisper as whisper

class AlbertForMultipleChoice(_AlbertPretrainedModel): ...
class AlbertForQuestionAnswering(_AlbertPretrainedModel): ...
class AlbertForSequenceClassification(_AlbertPretrainedModel): ...
class AlbertForTokenClassification(_AlbertPretrainedModel): ...
class BertForMultipleChoice(_BertForSequenceClassification): ...
class DistilBertForMultipleChoice(_DistilBertForSequenceClassification): ...
class ElectraForQuestionAnswering(_ElectraPretrainedModel): ...
class ElectraForTokenClassification(_ElectraPretrainedModel): ...
class ErnieForMaskedLM(_ErniePretrainedModel): ...
class ErnieForMultipleChoice(_ErniePretrainedModel): ...
class ErnieForQuestionAnswering(_ErniePretrainedModel): ...
class ErnieForSequenceClassification(_ErniePretrainedModel): ...
class ErnieForTokenClassification(_ErniePretrainedModel): ...
class MPNetForMaskedLM(_MPNetPretrainedModel): ...
class MPNetForMultipleChoice(_MPNetPretrainedModel): ...
class MPNetForQuestionAnswering(_MPNetPretrainedModel): ...
class MPNetForSequenceClassification(_MPNetPretrainedModel): ...
class MPNetForTokenClassification(_MPNetPretrainedModel): ...
class MixtralForQuestionAnswering(_DecoderForQuestionAnswering): ...
class MixtralForSequenceClassification(_DecoderForSequenceClassification): ...
class MixtralForTokenClassification(_DecoderForTokenClassification): ...
class ModernBertForMultipleChoice(_ModernBertForSequenceClassification): ...
class Qwen2MoeForQuestionAnswering(_DecoderForQuestionAnswering): ...
class Qwen2MoeForSequenceClassification(_DecoderForSequenceClassification): ...
class Qwen2MoeForTokenClassification(_DecoderForTokenClassification): ...
class Qwen3MoeForQuestionAnswering(_DecoderForQuestionAnswering): ...
class Qwen3MoeForSequenceClassification(_DecoderForSequenceClassification): ...
class Qwen3MoeForTokenClassification(_DecoderForTokenClassification): ...
class RobertaForMultipleChoice(_RobertaPretrainedModel): ...
__all__ = [
    "AlbertConfig",
    "AlbertForMaskedLM",
    "AlbertForMultipleChoice",
    "AlbertForQuestionAnswering",
    "AlbertForSequenceClassification",
    "AlbertForTokenClassification",
    "AlbertModel",
    "AutoModel",
    "BartConfig",
    "BartForConditionalGeneration",
    "BartForQuestionAnswering",
    "BartForSequenceClassification",
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
    "CLIPConfig",
    "CLIPModel",
    "CLIPTextConfig",
    "CLIPTextModel",
    "CLIPTextModelWithProjection",
    "CLIPVisionConfig",
    "CLIPVisionModel",
    "CLIPVisionModelWithProjection",
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
    "ElectraConfig",
    "ElectraForMaskedLM",
    "ElectraForPreTraining",
    "ElectraForQuestionAnswering",
    "ElectraForSequenceClassification",
    "ElectraForTokenClassification",
    "ElectraModel",
    "ErnieConfig",
    "ErnieForMaskedLM",
    "ErnieForMultipleChoice",
    "ErnieForQuestionAnswering",
    "ErnieForSequenceClassification",
    "ErnieForTokenClassification",
    "ErnieModel",
    "Falcon",
    "FalconConfig",
    "FalconForQuestionAnswering",
    "FalconForSequenceClassification",
    "FalconForTokenClassification",
    "FalconModel",
    "GPT2",
    "GPT2Config",
    "GPT2ForQuestionAnswering",
    "GPT2ForSequenceClassification",
    "GPT2ForTokenClassification",
    "GPT2Model",
    "Gemma",
    "Gemma2",
    "Gemma2Config",
    "Gemma2ForSequenceClassification",
    "Gemma2ForTokenClassification",
    "Gemma2Model",
    "Gemma3",
    "Gemma3Config",
    "Gemma3TextForSequenceClassification",
    "Gemma3TextModel",
    "GemmaConfig",
    "GemmaForSequenceClassification",
    "GemmaForTokenClassification",
    "GemmaModel",
    "ImageClassifier",
    "ImageEncoder",
    "ImageProcessor",
    "Lfm2",
    "Lfm2Config",
    "Lfm2Model",
    "Lfm2Moe",
    "Lfm2MoeConfig",
    "Lfm2MoeModel",
    "Llama",
    "LlamaConfig",
    "LlamaForQuestionAnswering",
    "LlamaForSequenceClassification",
    "LlamaForTokenClassification",
    "LlamaModel",
    "MPNetConfig",
    "MPNetForMaskedLM",
    "MPNetForMultipleChoice",
    "MPNetForQuestionAnswering",
    "MPNetForSequenceClassification",
    "MPNetForTokenClassification",
    "MPNetModel",
    "MarianConfig",
    "MarianMTModel",
    "Mistral",
    "MistralConfig",
    "MistralForQuestionAnswering",
    "MistralForSequenceClassification",
    "MistralForTokenClassification",
    "MistralModel",
    "Mixtral",
    "MixtralConfig",
    "MixtralForQuestionAnswering",
    "MixtralForSequenceClassification",
    "MixtralForTokenClassification",
    "MixtralModel",
    "ModernBertConfig",
    "ModernBertForMaskedLM",
    "ModernBertForMultipleChoice",
    "ModernBertForQuestionAnswering",
    "ModernBertForSequenceClassification",
    "ModernBertForTokenClassification",
    "ModernBertModel",
    "Olmoe",
    "OlmoeConfig",
    "OlmoeModel",
    "Phi3",
    "Phi3Config",
    "Phi3ForSequenceClassification",
    "Phi3ForTokenClassification",
    "Phi3Model",
    "Qwen2",
    "Qwen2Config",
    "Qwen2ForQuestionAnswering",
    "Qwen2ForSequenceClassification",
    "Qwen2ForTokenClassification",
    "Qwen2Model",
    "Qwen2Moe",
    "Qwen2MoeConfig",
    "Qwen2MoeForQuestionAnswering",
    "Qwen2MoeForSequenceClassification",
    "Qwen2MoeForTokenClassification",
    "Qwen2MoeModel",
    "Qwen3",
    "Qwen3Config",
    "Qwen3ForQuestionAnswering",
    "Qwen3ForSequenceClassification",
    "Qwen3ForTokenClassification",
    "Qwen3Model",
    "Qwen3Moe",
    "Qwen3MoeConfig",
    "Qwen3MoeForQuestionAnswering",
    "Qwen3MoeForSequenceClassification",
    "Qwen3MoeForTokenClassification",
    "Qwen3MoeModel",
    "RobertaConfig",
    "RobertaForCausalLM",
    "RobertaForMaskedLM",
    "RobertaForMultipleChoice",
    "RobertaForQuestionAnswering",
    "RobertaForSequenceClassification",
    "RobertaForTokenClassification",
    "RobertaModel",
    "SentenceEncoder",
    "SparseEncoder",
    "T5Config",
    "T5EncoderModel",
    "T5ForConditionalGeneration",
    "T5ForQuestionAnswering",
    "T5ForSequenceClassification",
    "T5ForTokenClassification",
    "TextClassifier",
    "ViTConfig",
    "ViTForImageClassification",
    "ViTModel",
    "Whisper",
    "WhisperConfig",
    "WhisperForAudioClassification",
    "albert",
    "auto",
    "bart",
    "bert",
    "clip",
    "derived_heads",
    "dinov2",
    "distilbert",
    "electra",
    "ernie",
    "falcon",
    "gemma",
    "gemma2",
    "gemma3",
    "gguf_export",
    "gguf_models",
    "glosses",
    "gpt2",
    "image_processor",
    "images",
    "lfm2",
    "lfm2_moe",
    "llama",
    "marian",
    "mistral",
    "mixtral",
    "modernbert",
    "mpnet",
    "olmoe",
    "pair_heads",
    "phi3",
    "qwen",
    "qwen_moe",
    "roberta",
    "sentence",
    "sound_classifier",
    "sparse_encoder",
    "spoken",
    "stories",
    "t5",
    "text_classifier",
    "vit",
    "whisper",
]
