"""Names that a package imports on first use. Written by scripts/build_stubs.py."""

from tallow.models.encoders.albert import AlbertConfig as AlbertConfig
from tallow.models.encoders.albert import AlbertForMaskedLM as AlbertForMaskedLM
from tallow.models.encoders.albert import AlbertPretrainedModel as _AlbertPretrainedModel
from tallow.models.encoders.albert import AlbertForPreTraining as AlbertForPreTraining
from tallow.models.encoders.albert import AlbertModel as AlbertModel
from tallow.models.decoders.arcee import Arcee as Arcee
from tallow.models.decoders.arcee import ArceeConfig as ArceeConfig
from tallow.models.decoders.decoder_heads import DecoderForQuestionAnswering as _DecoderForQuestionAnswering
from tallow.models.decoders.decoder_heads import DecoderForSequenceClassification as _DecoderForSequenceClassification
from tallow.models.decoders.decoder_heads import DecoderForTokenClassification as _DecoderForTokenClassification
from tallow.models.decoders.arcee import ArceeModel as ArceeModel
from tallow.models.auto import AutoModel as AutoModel
from tallow.models.seq2seq.bart import BartConfig as BartConfig
from tallow.models.seq2seq.text_decoder import BartForCausalLM as BartForCausalLM
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
from tallow.models.vision.blip_layers import BlipConfig as BlipConfig
from tallow.models.vision.blip import BlipForConditionalGeneration as BlipForConditionalGeneration
from tallow.models.vision.blip import BlipForQuestionAnswering as BlipForQuestionAnswering
from tallow.models.vision.clip import CLIPConfig as CLIPConfig
from tallow.models.vision.clip import CLIPForImageClassification as CLIPForImageClassification
from tallow.models.vision.clip import CLIPModel as CLIPModel
from tallow.models.vision.clip import CLIPTextConfig as CLIPTextConfig
from tallow.models.vision.clip import CLIPTextModel as CLIPTextModel
from tallow.models.vision.clip import CLIPTextModelWithProjection as CLIPTextModelWithProjection
from tallow.models.vision.clip import CLIPVisionConfig as CLIPVisionConfig
from tallow.models.vision.clip import CLIPVisionModel as CLIPVisionModel
from tallow.models.vision.clip import CLIPVisionModelWithProjection as CLIPVisionModelWithProjection
from tallow.models.decoders.cohere import Cohere as Cohere
from tallow.models.decoders.cohere import Cohere2 as Cohere2
from tallow.models.decoders.cohere import Cohere2Config as Cohere2Config
from tallow.models.decoders.cohere import Cohere2Model as Cohere2Model
from tallow.models.decoders.cohere import CohereConfig as CohereConfig
from tallow.models.decoders.cohere import CohereModel as CohereModel
from tallow.models.encoders.deberta_v2 import DebertaV2Config as DebertaV2Config
from tallow.models.encoders.deberta_v2 import DebertaV2ForMaskedLM as DebertaV2ForMaskedLM
from tallow.models.encoders.deberta_v2 import DebertaV2ForSequenceClassification as _DebertaV2ForSequenceClassification
from tallow.models.encoders.deberta_v2 import DebertaV2PretrainedModel as _DebertaV2PretrainedModel
from tallow.models.encoders.deberta_v2 import DebertaV2ForSequenceClassification as DebertaV2ForSequenceClassification
from tallow.models.encoders.deberta_v2 import DebertaV2Model as DebertaV2Model
from tallow.models.decoders.deepseek import DeepseekV2 as DeepseekV2
from tallow.models.decoders.deepseek import DeepseekV2Config as DeepseekV2Config
from tallow.models.decoders.deepseek import DeepseekV2Model as DeepseekV2Model
from tallow.models.decoders.deepseek import DeepseekV3 as DeepseekV3
from tallow.models.decoders.deepseek import DeepseekV3Config as DeepseekV3Config
from tallow.models.decoders.deepseek import DeepseekV3Model as DeepseekV3Model
from tallow.models.vision.depth_anything import DepthAnythingConfig as DepthAnythingConfig
from tallow.models.vision.depth_anything import DepthAnythingForDepthEstimation as DepthAnythingForDepthEstimation
from tallow.models.vision.depth import DepthEstimator as DepthEstimator
from tallow.models.vision.detr import DetrConfig as DetrConfig
from tallow.models.vision.detr import DetrForObjectDetection as DetrForObjectDetection
from tallow.models.vision.detr_masks import DetrForSegmentation as DetrForSegmentation
from tallow.models.vision.detr import DetrModel as DetrModel
from tallow.models.vision.dinov2 import Dinov2Backbone as Dinov2Backbone
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
from tallow.models.encoders.electra import ElectraForCausalLM as ElectraForCausalLM
from tallow.models.encoders.electra import ElectraForMaskedLM as ElectraForMaskedLM
from tallow.models.encoders.electra import ElectraForMultipleChoice as ElectraForMultipleChoice
from tallow.models.encoders.electra import ElectraForPreTraining as ElectraForPreTraining
from tallow.models.encoders.electra import ElectraPretrainedModel as _ElectraPretrainedModel
from tallow.models.encoders.electra import ElectraForSequenceClassification as ElectraForSequenceClassification
from tallow.models.encoders.electra import ElectraModel as ElectraModel
from tallow.models.decoders.ernie4_5 import Ernie4_5 as Ernie4_5
from tallow.models.decoders.ernie4_5 import Ernie4_5Config as Ernie4_5Config
from tallow.models.decoders.ernie4_5 import Ernie4_5Model as Ernie4_5Model
from tallow.models.encoders.ernie import ErnieConfig as ErnieConfig
from tallow.models.encoders.ernie import ErniePretrainedModel as _ErniePretrainedModel
from tallow.models.encoders.ernie import ErnieModel as ErnieModel
from tallow.models.encoders.eurobert import EuroBertConfig as EuroBertConfig
from tallow.models.encoders.eurobert import EuroBertForMaskedLM as EuroBertForMaskedLM
from tallow.models.encoders.eurobert import EuroBertForSequenceClassification as EuroBertForSequenceClassification
from tallow.models.encoders.eurobert import EuroBertForTokenClassification as EuroBertForTokenClassification
from tallow.models.encoders.eurobert import EuroBertModel as EuroBertModel
from tallow.models.decoders.exaone4 import Exaone4 as Exaone4
from tallow.models.decoders.exaone4 import Exaone4Config as Exaone4Config
from tallow.models.decoders.exaone4 import Exaone4Model as Exaone4Model
from tallow.models.decoders.falcon import Falcon as Falcon
from tallow.models.decoders.falcon import FalconConfig as FalconConfig
from tallow.models.decoders.falcon_h1 import FalconH1 as FalconH1
from tallow.models.decoders.falcon_h1 import FalconH1Config as FalconH1Config
from tallow.models.decoders.falcon_h1 import FalconH1Model as FalconH1Model
from tallow.models.decoders.falcon import FalconModel as FalconModel
from tallow.models.decoders.gpt2 import GPT2 as GPT2
from tallow.models.decoders.gpt2 import GPT2Config as GPT2Config
from tallow.models.decoders.gpt2 import GPT2DoubleHeadsModel as GPT2DoubleHeadsModel
from tallow.models.decoders.gpt2 import GPT2Model as GPT2Model
from tallow.models.decoders.gpt_neox import GPTNeoX as GPTNeoX
from tallow.models.decoders.gpt_neox import GPTNeoXConfig as GPTNeoXConfig
from tallow.models.decoders.gpt_neox import GPTNeoXModel as GPTNeoXModel
from tallow.models.decoders.gemma import Gemma as Gemma
from tallow.models.decoders.gemma2 import Gemma2 as Gemma2
from tallow.models.decoders.gemma2 import Gemma2Config as Gemma2Config
from tallow.models.decoders.gemma2 import Gemma2Model as Gemma2Model
from tallow.models.decoders.gemma3 import Gemma3 as Gemma3
from tallow.models.decoders.gemma3 import Gemma3Config as Gemma3Config
from tallow.models.decoders.gemma3 import Gemma3TextModel as Gemma3TextModel
from tallow.models.decoders.gemma4 import Gemma4 as Gemma4
from tallow.models.decoders.gemma4 import Gemma4Config as Gemma4Config
from tallow.models.decoders.gemma4 import Gemma4TextModel as Gemma4TextModel
from tallow.models.decoders.gemma import GemmaConfig as GemmaConfig
from tallow.models.decoders.gemma import GemmaModel as GemmaModel
from tallow.models.decoders.glm import Glm as Glm
from tallow.models.decoders.glm import Glm4 as Glm4
from tallow.models.decoders.glm import Glm4Config as Glm4Config
from tallow.models.decoders.glm import Glm4Model as Glm4Model
from tallow.models.decoders.glm import GlmConfig as GlmConfig
from tallow.models.decoders.glm import GlmModel as GlmModel
from tallow.models.decoders.gpt_oss import GptOss as GptOss
from tallow.models.decoders.gpt_oss import GptOssConfig as GptOssConfig
from tallow.models.decoders.gpt_oss import GptOssModel as GptOssModel
from tallow.models.decoders.granite import Granite as Granite
from tallow.models.decoders.granite import GraniteConfig as GraniteConfig
from tallow.models.decoders.granite import GraniteModel as GraniteModel
from tallow.models.decoders.granite import GraniteMoeHybrid as GraniteMoeHybrid
from tallow.models.decoders.granite import GraniteMoeHybridConfig as GraniteMoeHybridConfig
from tallow.models.decoders.granite import GraniteMoeHybridModel as GraniteMoeHybridModel
from tallow.models.encoders.rotary_bert import GteConfig as GteConfig
from tallow.models.encoders.rotary_bert import GteForMaskedLM as GteForMaskedLM
from tallow.models.encoders.rotary_bert import GtePretrainedModel as _GtePretrainedModel
from tallow.models.encoders.rotary_bert import GteModel as GteModel
from tallow.models.decoders.helium import Helium as Helium
from tallow.models.decoders.helium import HeliumConfig as HeliumConfig
from tallow.models.decoders.helium import HeliumModel as HeliumModel
from tallow.models.speech.hubert import HubertConfig as HubertConfig
from tallow.models.speech.hubert import HubertForCTC as HubertForCTC
from tallow.models.speech.hubert import HubertForSequenceClassification as HubertForSequenceClassification
from tallow.models.speech.hubert import HubertModel as HubertModel
from tallow.models.decoders.hunyuan import HunYuanDenseV1 as HunYuanDenseV1
from tallow.models.decoders.hunyuan import HunYuanDenseV1Config as HunYuanDenseV1Config
from tallow.models.decoders.hunyuan import HunYuanDenseV1Model as HunYuanDenseV1Model
from tallow.models.vision.captions import ImageCaptioner as ImageCaptioner
from tallow.models.vision.images import ImageClassifier as ImageClassifier
from tallow.models.vision.images import ImageEncoder as ImageEncoder
from tallow.models.vision.image_processor import ImageProcessor as ImageProcessor
from tallow.models.vision.segmenter import ImageSegmenter as ImageSegmenter
from tallow.models.decoders.jamba import Jamba as Jamba
from tallow.models.decoders.jamba import JambaConfig as JambaConfig
from tallow.models.decoders.jamba import JambaModel as JambaModel
from tallow.models.encoders.rotary_bert import JinaEmbeddingsV3Config as JinaEmbeddingsV3Config
from tallow.models.encoders.rotary_bert import JinaEmbeddingsV3PretrainedModel as _JinaEmbeddingsV3PretrainedModel
from tallow.models.encoders.rotary_bert import JinaEmbeddingsV3Model as JinaEmbeddingsV3Model
from tallow.models.decoders.lfm2 import Lfm2 as Lfm2
from tallow.models.decoders.lfm2 import Lfm2Config as Lfm2Config
from tallow.models.decoders.lfm2 import Lfm2Model as Lfm2Model
from tallow.models.decoders.lfm2_moe import Lfm2Moe as Lfm2Moe
from tallow.models.decoders.lfm2_moe import Lfm2MoeConfig as Lfm2MoeConfig
from tallow.models.decoders.lfm2_moe import Lfm2MoeModel as Lfm2MoeModel
from tallow.models.decoders.llama import Llama as Llama
from tallow.models.decoders.llama_config import LlamaConfig as LlamaConfig
from tallow.models.decoders.llama import LlamaModel as LlamaModel
from tallow.models.seq2seq.m2m100 import M2M100Config as M2M100Config
from tallow.models.seq2seq.m2m100 import M2M100ForConditionalGeneration as M2M100ForConditionalGeneration
from tallow.models.seq2seq.mbart import MBartConfig as MBartConfig
from tallow.models.seq2seq.text_decoder import BartForCausalLM as _BartForCausalLM
from tallow.models.seq2seq.mbart import MBartForConditionalGeneration as MBartForConditionalGeneration
from tallow.models.seq2seq.pair_heads import BartForQuestionAnswering as _BartForQuestionAnswering
from tallow.models.seq2seq.pair_heads import BartForSequenceClassification as _BartForSequenceClassification
from tallow.models.encoders.mpnet import MPNetConfig as MPNetConfig
from tallow.models.encoders.mpnet import MPNetPretrainedModel as _MPNetPretrainedModel
from tallow.models.encoders.mpnet import MPNetModel as MPNetModel
from tallow.models.seq2seq.mt5 import MT5Config as MT5Config
from tallow.models.seq2seq.mt5 import MT5EncoderModel as MT5EncoderModel
from tallow.models.seq2seq.mt5 import MT5ForConditionalGeneration as MT5ForConditionalGeneration
from tallow.models.seq2seq.pair_heads import T5ForQuestionAnswering as _T5ForQuestionAnswering
from tallow.models.seq2seq.pair_heads import T5ForSequenceClassification as _T5ForSequenceClassification
from tallow.models.seq2seq.pair_heads import T5ForTokenClassification as _T5ForTokenClassification
from tallow.models.decoders.mamba import Mamba as Mamba
from tallow.models.decoders.mamba2 import Mamba2 as Mamba2
from tallow.models.decoders.mamba2 import Mamba2Config as Mamba2Config
from tallow.models.decoders.mamba2 import Mamba2Model as Mamba2Model
from tallow.models.decoders.mamba import MambaConfig as MambaConfig
from tallow.models.decoders.mamba import MambaModel as MambaModel
from tallow.models.seq2seq.marian import MarianConfig as MarianConfig
from tallow.models.seq2seq.marian import MarianMTModel as MarianMTModel
from tallow.models.decoders.ministral import Ministral as Ministral
from tallow.models.decoders.ministral import Ministral3 as Ministral3
from tallow.models.decoders.ministral import Ministral3Config as Ministral3Config
from tallow.models.decoders.ministral import Ministral3Model as Ministral3Model
from tallow.models.decoders.ministral import MinistralConfig as MinistralConfig
from tallow.models.decoders.ministral import MinistralModel as MinistralModel
from tallow.models.decoders.mistral import Mistral as Mistral
from tallow.models.decoders.mistral import MistralConfig as MistralConfig
from tallow.models.decoders.mistral import MistralModel as MistralModel
from tallow.models.decoders.mixtral import Mixtral as Mixtral
from tallow.models.decoders.mixtral import MixtralConfig as MixtralConfig
from tallow.models.decoders.mixtral import MixtralModel as MixtralModel
from tallow.models.encoders.mobilebert import MobileBertConfig as MobileBertConfig
from tallow.models.encoders.mobilebert import MobileBertPretrainedModel as _MobileBertPretrainedModel
from tallow.models.encoders.mobilebert import MobileBertModel as MobileBertModel
from tallow.models.encoders.modernbert import ModernBertConfig as ModernBertConfig
from tallow.models.encoders.modernbert import ModernBertForMaskedLM as ModernBertForMaskedLM
from tallow.models.encoders.modernbert import ModernBertForSequenceClassification as _ModernBertForSequenceClassification
from tallow.models.encoders.modernbert import ModernBertForQuestionAnswering as ModernBertForQuestionAnswering
from tallow.models.encoders.modernbert import ModernBertForSequenceClassification as ModernBertForSequenceClassification
from tallow.models.encoders.modernbert import ModernBertForTokenClassification as ModernBertForTokenClassification
from tallow.models.encoders.modernbert import ModernBertModel as ModernBertModel
from tallow.models.encoders.multi_vector import MultiVectorEncoder as MultiVectorEncoder
from tallow.models.decoders.nanochat import NanoChat as NanoChat
from tallow.models.decoders.nanochat import NanoChatConfig as NanoChatConfig
from tallow.models.decoders.nanochat import NanoChatModel as NanoChatModel
from tallow.models.encoders.rotary_bert import NomicBertConfig as NomicBertConfig
from tallow.models.encoders.rotary_bert import NomicBertPretrainedModel as _NomicBertPretrainedModel
from tallow.models.encoders.rotary_bert import NomicBertModel as NomicBertModel
from tallow.models.decoders.opt import OPT as OPT
from tallow.models.decoders.opt import OPTConfig as OPTConfig
from tallow.models.decoders.opt import OPTModel as OPTModel
from tallow.models.vision.detector import ObjectDetector as ObjectDetector
from tallow.models.decoders.olmo import Olmo as Olmo
from tallow.models.decoders.olmo import Olmo2 as Olmo2
from tallow.models.decoders.olmo import Olmo2Config as Olmo2Config
from tallow.models.decoders.olmo import Olmo2Model as Olmo2Model
from tallow.models.decoders.olmo import Olmo3 as Olmo3
from tallow.models.decoders.olmo import Olmo3Config as Olmo3Config
from tallow.models.decoders.olmo import Olmo3Model as Olmo3Model
from tallow.models.decoders.olmo import OlmoConfig as OlmoConfig
from tallow.models.decoders.olmo import OlmoModel as OlmoModel
from tallow.models.decoders.olmoe import Olmoe as Olmoe
from tallow.models.decoders.olmoe import OlmoeConfig as OlmoeConfig
from tallow.models.decoders.olmoe import OlmoeModel as OlmoeModel
from tallow.models.seq2seq.pegasus import PegasusConfig as PegasusConfig
from tallow.models.seq2seq.pegasus import PegasusForConditionalGeneration as PegasusForConditionalGeneration
from tallow.models.decoders.phi import Phi as Phi
from tallow.models.decoders.phi3 import Phi3 as Phi3
from tallow.models.decoders.phi3 import Phi3Config as Phi3Config
from tallow.models.decoders.phi3 import Phi3Model as Phi3Model
from tallow.models.decoders.phi import PhiConfig as PhiConfig
from tallow.models.decoders.phi import PhiModel as PhiModel
from tallow.models.decoders.qwen import Qwen2 as Qwen2
from tallow.models.decoders.qwen import Qwen2Config as Qwen2Config
from tallow.models.decoders.qwen import Qwen2Model as Qwen2Model
from tallow.models.decoders.qwen_moe import Qwen2Moe as Qwen2Moe
from tallow.models.decoders.qwen_moe import Qwen2MoeConfig as Qwen2MoeConfig
from tallow.models.decoders.qwen_moe import Qwen2MoeModel as Qwen2MoeModel
from tallow.models.decoders.qwen import Qwen3 as Qwen3
from tallow.models.decoders.qwen import Qwen3Config as Qwen3Config
from tallow.models.decoders.qwen import Qwen3Model as Qwen3Model
from tallow.models.decoders.qwen_moe import Qwen3Moe as Qwen3Moe
from tallow.models.decoders.qwen_moe import Qwen3MoeConfig as Qwen3MoeConfig
from tallow.models.decoders.qwen_moe import Qwen3MoeModel as Qwen3MoeModel
from tallow.models.decoders.qwen3_next import Qwen3Next as Qwen3Next
from tallow.models.decoders.qwen3_next import Qwen3NextConfig as Qwen3NextConfig
from tallow.models.decoders.qwen3_next import Qwen3NextModel as Qwen3NextModel
from tallow.models.decoders.qwen3_5 import Qwen3_5 as Qwen3_5
from tallow.models.decoders.qwen3_5 import Qwen3_5Config as Qwen3_5Config
from tallow.models.decoders.qwen3_5 import Qwen3_5Moe as Qwen3_5Moe
from tallow.models.decoders.qwen3_5 import Qwen3_5MoeConfig as Qwen3_5MoeConfig
from tallow.models.decoders.qwen3_5 import Qwen3_5MoeTextModel as Qwen3_5MoeTextModel
from tallow.models.decoders.qwen3_5 import Qwen3_5TextModel as Qwen3_5TextModel
from tallow.models.decoders.rwkv7 import RWKV7 as RWKV7
from tallow.models.decoders.rwkv7 import RWKV7Config as RWKV7Config
from tallow.models.decoders.rwkv7 import RWKV7Model as RWKV7Model
from tallow.models.vision.resnet import ResNetBackbone as ResNetBackbone
from tallow.models.vision.resnet import ResNetConfig as ResNetConfig
from tallow.models.vision.resnet import ResNetForImageClassification as ResNetForImageClassification
from tallow.models.vision.resnet import ResNetModel as ResNetModel
from tallow.models.encoders.roberta import RobertaConfig as RobertaConfig
from tallow.models.encoders.roberta import RobertaForCausalLM as RobertaForCausalLM
from tallow.models.encoders.roberta import RobertaForMaskedLM as RobertaForMaskedLM
from tallow.models.encoders.roberta import RobertaPretrainedModel as _RobertaPretrainedModel
from tallow.models.encoders.roberta import RobertaForQuestionAnswering as RobertaForQuestionAnswering
from tallow.models.encoders.roberta import RobertaForSequenceClassification as RobertaForSequenceClassification
from tallow.models.encoders.roberta import RobertaForTokenClassification as RobertaForTokenClassification
from tallow.models.encoders.roberta import RobertaModel as RobertaModel
from tallow.models.decoders.seed_oss import SeedOss as SeedOss
from tallow.models.decoders.seed_oss import SeedOssConfig as SeedOssConfig
from tallow.models.decoders.seed_oss import SeedOssModel as SeedOssModel
from tallow.models.vision.segformer import SegformerConfig as SegformerConfig
from tallow.models.vision.segformer import SegformerForImageClassification as SegformerForImageClassification
from tallow.models.vision.segformer import SegformerForSemanticSegmentation as SegformerForSemanticSegmentation
from tallow.models.vision.segformer import SegformerModel as SegformerModel
from tallow.models.encoders.sentence import SentenceEncoder as SentenceEncoder
from tallow.models.decoders.smollm3 import SmolLM3 as SmolLM3
from tallow.models.decoders.smollm3 import SmolLM3Config as SmolLM3Config
from tallow.models.decoders.smollm3 import SmolLM3Model as SmolLM3Model
from tallow.models.encoders.sparse_encoder import SparseEncoder as SparseEncoder
from tallow.models.decoders.stablelm import StableLm as StableLm
from tallow.models.decoders.stablelm import StableLmConfig as StableLmConfig
from tallow.models.decoders.stablelm import StableLmModel as StableLmModel
from tallow.models.decoders.starcoder2 import Starcoder2 as Starcoder2
from tallow.models.decoders.starcoder2 import Starcoder2Config as Starcoder2Config
from tallow.models.decoders.starcoder2 import Starcoder2Model as Starcoder2Model
from tallow.models.seq2seq.t5 import T5Config as T5Config
from tallow.models.seq2seq.t5 import T5EncoderModel as T5EncoderModel
from tallow.models.seq2seq.t5 import T5ForConditionalGeneration as T5ForConditionalGeneration
from tallow.models.seq2seq.pair_heads import T5ForQuestionAnswering as T5ForQuestionAnswering
from tallow.models.seq2seq.pair_heads import T5ForSequenceClassification as T5ForSequenceClassification
from tallow.models.seq2seq.pair_heads import T5ForTokenClassification as T5ForTokenClassification
from tallow.models.encoders.text_classifier import TextClassifier as TextClassifier
from tallow.models.seq2seq.mt5 import UMT5Config as UMT5Config
from tallow.models.seq2seq.mt5 import UMT5EncoderModel as UMT5EncoderModel
from tallow.models.seq2seq.mt5 import UMT5ForConditionalGeneration as UMT5ForConditionalGeneration
from tallow.models.vision.vit import ViTConfig as ViTConfig
from tallow.models.vision.vit import ViTForImageClassification as ViTForImageClassification
from tallow.models.vision.vit import ViTForMaskedImageModeling as ViTForMaskedImageModeling
from tallow.models.vision.vit import ViTModel as ViTModel
from tallow.models.speech.vits import VitsConfig as VitsConfig
from tallow.models.speech.vits import VitsModel as VitsModel
from tallow.models.speech.wav2vec2 import Wav2Vec2Config as Wav2Vec2Config
from tallow.models.speech.wav2vec2 import Wav2Vec2ForAudioFrameClassification as Wav2Vec2ForAudioFrameClassification
from tallow.models.speech.wav2vec2 import Wav2Vec2ForCTC as Wav2Vec2ForCTC
from tallow.models.speech.wav2vec2 import Wav2Vec2ForSequenceClassification as Wav2Vec2ForSequenceClassification
from tallow.models.speech.wav2vec2 import Wav2Vec2ForXVector as Wav2Vec2ForXVector
from tallow.models.speech.wav2vec2 import Wav2Vec2Model as Wav2Vec2Model
from tallow.models.speech.wavlm import WavLMConfig as WavLMConfig
from tallow.models.speech.wavlm import WavLMForAudioFrameClassification as WavLMForAudioFrameClassification
from tallow.models.speech.wavlm import WavLMForCTC as WavLMForCTC
from tallow.models.speech.wavlm import WavLMForSequenceClassification as WavLMForSequenceClassification
from tallow.models.speech.wavlm import WavLMForXVector as WavLMForXVector
from tallow.models.speech.wavlm import WavLMModel as WavLMModel
from tallow.models.whisper.model import Whisper as Whisper
from tallow.models.whisper.model import WhisperConfig as WhisperConfig
from tallow.models.whisper.sound_classifier import WhisperForAudioClassification as WhisperForAudioClassification
from tallow.models.whisper.text_decoder import WhisperForCausalLM as WhisperForCausalLM
from tallow.models.encoders.xlm_roberta_xl import XLMRobertaXLConfig as XLMRobertaXLConfig
from tallow.models.encoders.xlm_roberta_xl import XLMRobertaXLPretrainedModel as _XLMRobertaXLPretrainedModel
from tallow.models.encoders.xlm_roberta_xl import XLMRobertaXLModel as XLMRobertaXLModel
from tallow.models.encoders import albert as albert
from tallow.models.decoders import arcee as arcee
from tallow.models import auto as auto
from tallow.models.seq2seq import bart as bart
from tallow.models.encoders import bert as bert
from tallow.models.vision import blip as blip
from tallow.models.vision import blip_layers as blip_layers
from tallow.models.vision import captions as captions
from tallow.models.vision import clip as clip
from tallow.models.decoders import cohere as cohere
from tallow.models.encoders import deberta_v2 as deberta_v2
from tallow.models.decoders import deepseek as deepseek
from tallow.models.vision import depth as depth
from tallow.models.vision import depth_anything as depth_anything
from tallow.models import derived_heads as derived_heads
from tallow.models.vision import detector as detector
from tallow.models.vision import detr as detr
from tallow.models.vision import detr_masks as detr_masks
from tallow.models.vision import dinov2 as dinov2
from tallow.models.encoders import distilbert as distilbert
from tallow.models.encoders import electra as electra
from tallow.models.built_in import emoji as emoji
from tallow.models.encoders import ernie as ernie
from tallow.models.decoders import ernie4_5 as ernie4_5
from tallow.models.encoders import eurobert as eurobert
from tallow.models.decoders import exaone4 as exaone4
from tallow.models.decoders import falcon as falcon
from tallow.models.decoders import falcon_h1 as falcon_h1
from tallow.models.decoders import gemma as gemma
from tallow.models.decoders import gemma2 as gemma2
from tallow.models.decoders import gemma3 as gemma3
from tallow.models.decoders import gemma4 as gemma4
from tallow.models.gguf import export as gguf_export
from tallow.models.gguf import models as gguf_models
from tallow.models.decoders import glm as glm
from tallow.models.built_in import glosses as glosses
from tallow.models.decoders import gpt2 as gpt2
from tallow.models.decoders import gpt_neox as gpt_neox
from tallow.models.decoders import gpt_oss as gpt_oss
from tallow.models.decoders import granite as granite
from tallow.models.decoders import helium as helium
from tallow.models.speech import hubert as hubert
from tallow.models.decoders import hunyuan as hunyuan
from tallow.models.vision import image_processor as image_processor
from tallow.models.vision import images as images
from tallow.models.decoders import jamba as jamba
from tallow.models.decoders import lfm2 as lfm2
from tallow.models.decoders import lfm2_moe as lfm2_moe
from tallow.models.decoders import llama as llama
from tallow.models.seq2seq import m2m100 as m2m100
from tallow.models.decoders import mamba as mamba
from tallow.models.decoders import mamba2 as mamba2
from tallow.models.seq2seq import marian as marian
from tallow.models.seq2seq import mbart as mbart
from tallow.models.decoders import ministral as ministral
from tallow.models.decoders import mistral as mistral
from tallow.models.decoders import mixtral as mixtral
from tallow.models.encoders import mobilebert as mobilebert
from tallow.models.encoders import modernbert as modernbert
from tallow.models.encoders import mpnet as mpnet
from tallow.models.seq2seq import mt5 as mt5
from tallow.models.encoders import multi_vector as multi_vector
from tallow.models.decoders import nanochat as nanochat
from tallow.models.decoders import olmo as olmo
from tallow.models.decoders import olmoe as olmoe
from tallow.models.decoders import opt as opt
from tallow.models.seq2seq import pair_heads as pair_heads
from tallow.models.seq2seq import pegasus as pegasus
from tallow.models.decoders import phi as phi
from tallow.models.decoders import phi3 as phi3
from tallow.models.decoders import qwen as qwen
from tallow.models.decoders import qwen3_5 as qwen3_5
from tallow.models.decoders import qwen3_next as qwen3_next
from tallow.models.decoders import qwen_moe as qwen_moe
from tallow.models.vision import resnet as resnet
from tallow.models.encoders import roberta as roberta
from tallow.models.encoders import rotary_bert as rotary_bert
from tallow.models.decoders import rwkv7 as rwkv7
from tallow.models.decoders import seed_oss as seed_oss
from tallow.models.vision import segformer as segformer
from tallow.models.vision import segmenter as segmenter
from tallow.models.encoders import sentence as sentence
from tallow.models.decoders import smollm3 as smollm3
from tallow.models.whisper import sound_classifier as sound_classifier
from tallow.models.encoders import sparse_encoder as sparse_encoder
from tallow.models.built_in import spoken as spoken
from tallow.models.decoders import stablelm as stablelm
from tallow.models.decoders import starcoder2 as starcoder2
from tallow.models.built_in import stories as stories
from tallow.models.seq2seq import t5 as t5
from tallow.models.encoders import text_classifier as text_classifier
from tallow.models.whisper import text_decoder as text_decoder
from tallow.models.vision import vit as vit
from tallow.models.speech import vits as vits
from tallow.models.speech import wav2vec2 as wav2vec2
from tallow.models.speech import wavlm as wavlm
from tallow.models import whisper as whisper
from tallow.models.encoders import xlm_roberta_xl as xlm_roberta_xl

class AlbertForMultipleChoice(_AlbertPretrainedModel): ...
class AlbertForQuestionAnswering(_AlbertPretrainedModel): ...
class AlbertForSequenceClassification(_AlbertPretrainedModel): ...
class AlbertForTokenClassification(_AlbertPretrainedModel): ...
class ArceeForQuestionAnswering(_DecoderForQuestionAnswering): ...
class ArceeForSequenceClassification(_DecoderForSequenceClassification): ...
class ArceeForTokenClassification(_DecoderForTokenClassification): ...
class BertForMultipleChoice(_BertForSequenceClassification): ...
class DebertaV2ForMultipleChoice(_DebertaV2ForSequenceClassification): ...
class DebertaV2ForQuestionAnswering(_DebertaV2PretrainedModel): ...
class DebertaV2ForTokenClassification(_DebertaV2PretrainedModel): ...
class DeepseekV2ForSequenceClassification(_DecoderForSequenceClassification): ...
class DeepseekV3ForSequenceClassification(_DecoderForSequenceClassification): ...
class DeepseekV3ForTokenClassification(_DecoderForTokenClassification): ...
class DistilBertForMultipleChoice(_DistilBertForSequenceClassification): ...
class ElectraForQuestionAnswering(_ElectraPretrainedModel): ...
class ElectraForTokenClassification(_ElectraPretrainedModel): ...
class ErnieForCausalLM(_ErniePretrainedModel): ...
class ErnieForMaskedLM(_ErniePretrainedModel): ...
class ErnieForMultipleChoice(_ErniePretrainedModel): ...
class ErnieForNextSentencePrediction(_ErniePretrainedModel): ...
class ErnieForPreTraining(_ErniePretrainedModel): ...
class ErnieForQuestionAnswering(_ErniePretrainedModel): ...
class ErnieForSequenceClassification(_ErniePretrainedModel): ...
class ErnieForTokenClassification(_ErniePretrainedModel): ...
class Exaone4ForQuestionAnswering(_DecoderForQuestionAnswering): ...
class Exaone4ForSequenceClassification(_DecoderForSequenceClassification): ...
class Exaone4ForTokenClassification(_DecoderForTokenClassification): ...
class FalconForQuestionAnswering(_DecoderForQuestionAnswering): ...
class FalconForSequenceClassification(_DecoderForSequenceClassification): ...
class FalconForTokenClassification(_DecoderForTokenClassification): ...
class GPT2ForQuestionAnswering(_DecoderForQuestionAnswering): ...
class GPT2ForSequenceClassification(_DecoderForSequenceClassification): ...
class GPT2ForTokenClassification(_DecoderForTokenClassification): ...
class GPTNeoXForQuestionAnswering(_DecoderForQuestionAnswering): ...
class GPTNeoXForSequenceClassification(_DecoderForSequenceClassification): ...
class GPTNeoXForTokenClassification(_DecoderForTokenClassification): ...
class Gemma2ForSequenceClassification(_DecoderForSequenceClassification): ...
class Gemma2ForTokenClassification(_DecoderForTokenClassification): ...
class Gemma3TextForSequenceClassification(_DecoderForSequenceClassification): ...
class GemmaForSequenceClassification(_DecoderForSequenceClassification): ...
class GemmaForTokenClassification(_DecoderForTokenClassification): ...
class Glm4ForSequenceClassification(_DecoderForSequenceClassification): ...
class Glm4ForTokenClassification(_DecoderForTokenClassification): ...
class GlmForSequenceClassification(_DecoderForSequenceClassification): ...
class GlmForTokenClassification(_DecoderForTokenClassification): ...
class GptOssForSequenceClassification(_DecoderForSequenceClassification): ...
class GptOssForTokenClassification(_DecoderForTokenClassification): ...
class GteForSequenceClassification(_GtePretrainedModel): ...
class GteForTokenClassification(_GtePretrainedModel): ...
class HeliumForSequenceClassification(_DecoderForSequenceClassification): ...
class HeliumForTokenClassification(_DecoderForTokenClassification): ...
class HunYuanDenseV1ForSequenceClassification(_DecoderForSequenceClassification): ...
class JambaForSequenceClassification(_DecoderForSequenceClassification): ...
class JinaEmbeddingsV3ForMaskedLM(_JinaEmbeddingsV3PretrainedModel): ...
class JinaEmbeddingsV3ForQuestionAnswering(_JinaEmbeddingsV3PretrainedModel): ...
class JinaEmbeddingsV3ForSequenceClassification(_JinaEmbeddingsV3PretrainedModel): ...
class JinaEmbeddingsV3ForTokenClassification(_JinaEmbeddingsV3PretrainedModel): ...
class LlamaForQuestionAnswering(_DecoderForQuestionAnswering): ...
class LlamaForSequenceClassification(_DecoderForSequenceClassification): ...
class LlamaForTokenClassification(_DecoderForTokenClassification): ...
class MBartForCausalLM(_BartForCausalLM): ...
class MBartForQuestionAnswering(_BartForQuestionAnswering): ...
class MBartForSequenceClassification(_BartForSequenceClassification): ...
class MPNetForMaskedLM(_MPNetPretrainedModel): ...
class MPNetForMultipleChoice(_MPNetPretrainedModel): ...
class MPNetForQuestionAnswering(_MPNetPretrainedModel): ...
class MPNetForSequenceClassification(_MPNetPretrainedModel): ...
class MPNetForTokenClassification(_MPNetPretrainedModel): ...
class MT5ForQuestionAnswering(_T5ForQuestionAnswering): ...
class MT5ForSequenceClassification(_T5ForSequenceClassification): ...
class MT5ForTokenClassification(_T5ForTokenClassification): ...
class MarianForCausalLM(_BartForCausalLM): ...
class Ministral3ForQuestionAnswering(_DecoderForQuestionAnswering): ...
class Ministral3ForSequenceClassification(_DecoderForSequenceClassification): ...
class Ministral3ForTokenClassification(_DecoderForTokenClassification): ...
class MinistralForQuestionAnswering(_DecoderForQuestionAnswering): ...
class MinistralForSequenceClassification(_DecoderForSequenceClassification): ...
class MinistralForTokenClassification(_DecoderForTokenClassification): ...
class MistralForQuestionAnswering(_DecoderForQuestionAnswering): ...
class MistralForSequenceClassification(_DecoderForSequenceClassification): ...
class MistralForTokenClassification(_DecoderForTokenClassification): ...
class MixtralForQuestionAnswering(_DecoderForQuestionAnswering): ...
class MixtralForSequenceClassification(_DecoderForSequenceClassification): ...
class MixtralForTokenClassification(_DecoderForTokenClassification): ...
class MobileBertForMaskedLM(_MobileBertPretrainedModel): ...
class MobileBertForMultipleChoice(_MobileBertPretrainedModel): ...
class MobileBertForNextSentencePrediction(_MobileBertPretrainedModel): ...
class MobileBertForPreTraining(_MobileBertPretrainedModel): ...
class MobileBertForQuestionAnswering(_MobileBertPretrainedModel): ...
class MobileBertForSequenceClassification(_MobileBertPretrainedModel): ...
class MobileBertForTokenClassification(_MobileBertPretrainedModel): ...
class ModernBertForMultipleChoice(_ModernBertForSequenceClassification): ...
class NomicBertForMaskedLM(_NomicBertPretrainedModel): ...
class NomicBertForSequenceClassification(_NomicBertPretrainedModel): ...
class NomicBertForTokenClassification(_NomicBertPretrainedModel): ...
class OPTForQuestionAnswering(_DecoderForQuestionAnswering): ...
class OPTForSequenceClassification(_DecoderForSequenceClassification): ...
class Olmo2ForSequenceClassification(_DecoderForSequenceClassification): ...
class Olmo3ForSequenceClassification(_DecoderForSequenceClassification): ...
class OlmoForSequenceClassification(_DecoderForSequenceClassification): ...
class PegasusForCausalLM(_BartForCausalLM): ...
class Phi3ForSequenceClassification(_DecoderForSequenceClassification): ...
class Phi3ForTokenClassification(_DecoderForTokenClassification): ...
class PhiForSequenceClassification(_DecoderForSequenceClassification): ...
class PhiForTokenClassification(_DecoderForTokenClassification): ...
class Qwen2ForQuestionAnswering(_DecoderForQuestionAnswering): ...
class Qwen2ForSequenceClassification(_DecoderForSequenceClassification): ...
class Qwen2ForTokenClassification(_DecoderForTokenClassification): ...
class Qwen2MoeForQuestionAnswering(_DecoderForQuestionAnswering): ...
class Qwen2MoeForSequenceClassification(_DecoderForSequenceClassification): ...
class Qwen2MoeForTokenClassification(_DecoderForTokenClassification): ...
class Qwen3ForQuestionAnswering(_DecoderForQuestionAnswering): ...
class Qwen3ForSequenceClassification(_DecoderForSequenceClassification): ...
class Qwen3ForTokenClassification(_DecoderForTokenClassification): ...
class Qwen3MoeForQuestionAnswering(_DecoderForQuestionAnswering): ...
class Qwen3MoeForSequenceClassification(_DecoderForSequenceClassification): ...
class Qwen3MoeForTokenClassification(_DecoderForTokenClassification): ...
class Qwen3NextForQuestionAnswering(_DecoderForQuestionAnswering): ...
class Qwen3NextForSequenceClassification(_DecoderForSequenceClassification): ...
class Qwen3NextForTokenClassification(_DecoderForTokenClassification): ...
class Qwen3_5TextForSequenceClassification(_DecoderForSequenceClassification): ...
class RobertaForMultipleChoice(_RobertaPretrainedModel): ...
class SeedOssForQuestionAnswering(_DecoderForQuestionAnswering): ...
class SeedOssForSequenceClassification(_DecoderForSequenceClassification): ...
class SeedOssForTokenClassification(_DecoderForTokenClassification): ...
class SmolLM3ForQuestionAnswering(_DecoderForQuestionAnswering): ...
class SmolLM3ForSequenceClassification(_DecoderForSequenceClassification): ...
class SmolLM3ForTokenClassification(_DecoderForTokenClassification): ...
class StableLmForSequenceClassification(_DecoderForSequenceClassification): ...
class StableLmForTokenClassification(_DecoderForTokenClassification): ...
class Starcoder2ForSequenceClassification(_DecoderForSequenceClassification): ...
class Starcoder2ForTokenClassification(_DecoderForTokenClassification): ...
class UMT5ForQuestionAnswering(_T5ForQuestionAnswering): ...
class UMT5ForSequenceClassification(_T5ForSequenceClassification): ...
class UMT5ForTokenClassification(_T5ForTokenClassification): ...
class XLMRobertaXLForCausalLM(_XLMRobertaXLPretrainedModel): ...
class XLMRobertaXLForMaskedLM(_XLMRobertaXLPretrainedModel): ...
class XLMRobertaXLForMultipleChoice(_XLMRobertaXLPretrainedModel): ...
class XLMRobertaXLForQuestionAnswering(_XLMRobertaXLPretrainedModel): ...
class XLMRobertaXLForSequenceClassification(_XLMRobertaXLPretrainedModel): ...
class XLMRobertaXLForTokenClassification(_XLMRobertaXLPretrainedModel): ...
__all__ = [
    "AlbertConfig",
    "AlbertForMaskedLM",
    "AlbertForMultipleChoice",
    "AlbertForPreTraining",
    "AlbertForQuestionAnswering",
    "AlbertForSequenceClassification",
    "AlbertForTokenClassification",
    "AlbertModel",
    "Arcee",
    "ArceeConfig",
    "ArceeForQuestionAnswering",
    "ArceeForSequenceClassification",
    "ArceeForTokenClassification",
    "ArceeModel",
    "AutoModel",
    "BartConfig",
    "BartForCausalLM",
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
    "BlipConfig",
    "BlipForConditionalGeneration",
    "BlipForQuestionAnswering",
    "CLIPConfig",
    "CLIPForImageClassification",
    "CLIPModel",
    "CLIPTextConfig",
    "CLIPTextModel",
    "CLIPTextModelWithProjection",
    "CLIPVisionConfig",
    "CLIPVisionModel",
    "CLIPVisionModelWithProjection",
    "Cohere",
    "Cohere2",
    "Cohere2Config",
    "Cohere2Model",
    "CohereConfig",
    "CohereModel",
    "DebertaV2Config",
    "DebertaV2ForMaskedLM",
    "DebertaV2ForMultipleChoice",
    "DebertaV2ForQuestionAnswering",
    "DebertaV2ForSequenceClassification",
    "DebertaV2ForTokenClassification",
    "DebertaV2Model",
    "DeepseekV2",
    "DeepseekV2Config",
    "DeepseekV2ForSequenceClassification",
    "DeepseekV2Model",
    "DeepseekV3",
    "DeepseekV3Config",
    "DeepseekV3ForSequenceClassification",
    "DeepseekV3ForTokenClassification",
    "DeepseekV3Model",
    "DepthAnythingConfig",
    "DepthAnythingForDepthEstimation",
    "DepthEstimator",
    "DetrConfig",
    "DetrForObjectDetection",
    "DetrForSegmentation",
    "DetrModel",
    "Dinov2Backbone",
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
    "ElectraForCausalLM",
    "ElectraForMaskedLM",
    "ElectraForMultipleChoice",
    "ElectraForPreTraining",
    "ElectraForQuestionAnswering",
    "ElectraForSequenceClassification",
    "ElectraForTokenClassification",
    "ElectraModel",
    "Ernie4_5",
    "Ernie4_5Config",
    "Ernie4_5Model",
    "ErnieConfig",
    "ErnieForCausalLM",
    "ErnieForMaskedLM",
    "ErnieForMultipleChoice",
    "ErnieForNextSentencePrediction",
    "ErnieForPreTraining",
    "ErnieForQuestionAnswering",
    "ErnieForSequenceClassification",
    "ErnieForTokenClassification",
    "ErnieModel",
    "EuroBertConfig",
    "EuroBertForMaskedLM",
    "EuroBertForSequenceClassification",
    "EuroBertForTokenClassification",
    "EuroBertModel",
    "Exaone4",
    "Exaone4Config",
    "Exaone4ForQuestionAnswering",
    "Exaone4ForSequenceClassification",
    "Exaone4ForTokenClassification",
    "Exaone4Model",
    "Falcon",
    "FalconConfig",
    "FalconForQuestionAnswering",
    "FalconForSequenceClassification",
    "FalconForTokenClassification",
    "FalconH1",
    "FalconH1Config",
    "FalconH1Model",
    "FalconModel",
    "GPT2",
    "GPT2Config",
    "GPT2DoubleHeadsModel",
    "GPT2ForQuestionAnswering",
    "GPT2ForSequenceClassification",
    "GPT2ForTokenClassification",
    "GPT2Model",
    "GPTNeoX",
    "GPTNeoXConfig",
    "GPTNeoXForQuestionAnswering",
    "GPTNeoXForSequenceClassification",
    "GPTNeoXForTokenClassification",
    "GPTNeoXModel",
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
    "Gemma4",
    "Gemma4Config",
    "Gemma4TextModel",
    "GemmaConfig",
    "GemmaForSequenceClassification",
    "GemmaForTokenClassification",
    "GemmaModel",
    "Glm",
    "Glm4",
    "Glm4Config",
    "Glm4ForSequenceClassification",
    "Glm4ForTokenClassification",
    "Glm4Model",
    "GlmConfig",
    "GlmForSequenceClassification",
    "GlmForTokenClassification",
    "GlmModel",
    "GptOss",
    "GptOssConfig",
    "GptOssForSequenceClassification",
    "GptOssForTokenClassification",
    "GptOssModel",
    "Granite",
    "GraniteConfig",
    "GraniteModel",
    "GraniteMoeHybrid",
    "GraniteMoeHybridConfig",
    "GraniteMoeHybridModel",
    "GteConfig",
    "GteForMaskedLM",
    "GteForSequenceClassification",
    "GteForTokenClassification",
    "GteModel",
    "Helium",
    "HeliumConfig",
    "HeliumForSequenceClassification",
    "HeliumForTokenClassification",
    "HeliumModel",
    "HubertConfig",
    "HubertForCTC",
    "HubertForSequenceClassification",
    "HubertModel",
    "HunYuanDenseV1",
    "HunYuanDenseV1Config",
    "HunYuanDenseV1ForSequenceClassification",
    "HunYuanDenseV1Model",
    "ImageCaptioner",
    "ImageClassifier",
    "ImageEncoder",
    "ImageProcessor",
    "ImageSegmenter",
    "Jamba",
    "JambaConfig",
    "JambaForSequenceClassification",
    "JambaModel",
    "JinaEmbeddingsV3Config",
    "JinaEmbeddingsV3ForMaskedLM",
    "JinaEmbeddingsV3ForQuestionAnswering",
    "JinaEmbeddingsV3ForSequenceClassification",
    "JinaEmbeddingsV3ForTokenClassification",
    "JinaEmbeddingsV3Model",
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
    "M2M100Config",
    "M2M100ForConditionalGeneration",
    "MBartConfig",
    "MBartForCausalLM",
    "MBartForConditionalGeneration",
    "MBartForQuestionAnswering",
    "MBartForSequenceClassification",
    "MPNetConfig",
    "MPNetForMaskedLM",
    "MPNetForMultipleChoice",
    "MPNetForQuestionAnswering",
    "MPNetForSequenceClassification",
    "MPNetForTokenClassification",
    "MPNetModel",
    "MT5Config",
    "MT5EncoderModel",
    "MT5ForConditionalGeneration",
    "MT5ForQuestionAnswering",
    "MT5ForSequenceClassification",
    "MT5ForTokenClassification",
    "Mamba",
    "Mamba2",
    "Mamba2Config",
    "Mamba2Model",
    "MambaConfig",
    "MambaModel",
    "MarianConfig",
    "MarianForCausalLM",
    "MarianMTModel",
    "Ministral",
    "Ministral3",
    "Ministral3Config",
    "Ministral3ForQuestionAnswering",
    "Ministral3ForSequenceClassification",
    "Ministral3ForTokenClassification",
    "Ministral3Model",
    "MinistralConfig",
    "MinistralForQuestionAnswering",
    "MinistralForSequenceClassification",
    "MinistralForTokenClassification",
    "MinistralModel",
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
    "MobileBertConfig",
    "MobileBertForMaskedLM",
    "MobileBertForMultipleChoice",
    "MobileBertForNextSentencePrediction",
    "MobileBertForPreTraining",
    "MobileBertForQuestionAnswering",
    "MobileBertForSequenceClassification",
    "MobileBertForTokenClassification",
    "MobileBertModel",
    "ModernBertConfig",
    "ModernBertForMaskedLM",
    "ModernBertForMultipleChoice",
    "ModernBertForQuestionAnswering",
    "ModernBertForSequenceClassification",
    "ModernBertForTokenClassification",
    "ModernBertModel",
    "MultiVectorEncoder",
    "NanoChat",
    "NanoChatConfig",
    "NanoChatModel",
    "NomicBertConfig",
    "NomicBertForMaskedLM",
    "NomicBertForSequenceClassification",
    "NomicBertForTokenClassification",
    "NomicBertModel",
    "OPT",
    "OPTConfig",
    "OPTForQuestionAnswering",
    "OPTForSequenceClassification",
    "OPTModel",
    "ObjectDetector",
    "Olmo",
    "Olmo2",
    "Olmo2Config",
    "Olmo2ForSequenceClassification",
    "Olmo2Model",
    "Olmo3",
    "Olmo3Config",
    "Olmo3ForSequenceClassification",
    "Olmo3Model",
    "OlmoConfig",
    "OlmoForSequenceClassification",
    "OlmoModel",
    "Olmoe",
    "OlmoeConfig",
    "OlmoeModel",
    "PegasusConfig",
    "PegasusForCausalLM",
    "PegasusForConditionalGeneration",
    "Phi",
    "Phi3",
    "Phi3Config",
    "Phi3ForSequenceClassification",
    "Phi3ForTokenClassification",
    "Phi3Model",
    "PhiConfig",
    "PhiForSequenceClassification",
    "PhiForTokenClassification",
    "PhiModel",
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
    "Qwen3Next",
    "Qwen3NextConfig",
    "Qwen3NextForQuestionAnswering",
    "Qwen3NextForSequenceClassification",
    "Qwen3NextForTokenClassification",
    "Qwen3NextModel",
    "Qwen3_5",
    "Qwen3_5Config",
    "Qwen3_5Moe",
    "Qwen3_5MoeConfig",
    "Qwen3_5MoeTextModel",
    "Qwen3_5TextForSequenceClassification",
    "Qwen3_5TextModel",
    "RWKV7",
    "RWKV7Config",
    "RWKV7Model",
    "ResNetBackbone",
    "ResNetConfig",
    "ResNetForImageClassification",
    "ResNetModel",
    "RobertaConfig",
    "RobertaForCausalLM",
    "RobertaForMaskedLM",
    "RobertaForMultipleChoice",
    "RobertaForQuestionAnswering",
    "RobertaForSequenceClassification",
    "RobertaForTokenClassification",
    "RobertaModel",
    "SeedOss",
    "SeedOssConfig",
    "SeedOssForQuestionAnswering",
    "SeedOssForSequenceClassification",
    "SeedOssForTokenClassification",
    "SeedOssModel",
    "SegformerConfig",
    "SegformerForImageClassification",
    "SegformerForSemanticSegmentation",
    "SegformerModel",
    "SentenceEncoder",
    "SmolLM3",
    "SmolLM3Config",
    "SmolLM3ForQuestionAnswering",
    "SmolLM3ForSequenceClassification",
    "SmolLM3ForTokenClassification",
    "SmolLM3Model",
    "SparseEncoder",
    "StableLm",
    "StableLmConfig",
    "StableLmForSequenceClassification",
    "StableLmForTokenClassification",
    "StableLmModel",
    "Starcoder2",
    "Starcoder2Config",
    "Starcoder2ForSequenceClassification",
    "Starcoder2ForTokenClassification",
    "Starcoder2Model",
    "T5Config",
    "T5EncoderModel",
    "T5ForConditionalGeneration",
    "T5ForQuestionAnswering",
    "T5ForSequenceClassification",
    "T5ForTokenClassification",
    "TextClassifier",
    "UMT5Config",
    "UMT5EncoderModel",
    "UMT5ForConditionalGeneration",
    "UMT5ForQuestionAnswering",
    "UMT5ForSequenceClassification",
    "UMT5ForTokenClassification",
    "ViTConfig",
    "ViTForImageClassification",
    "ViTForMaskedImageModeling",
    "ViTModel",
    "VitsConfig",
    "VitsModel",
    "Wav2Vec2Config",
    "Wav2Vec2ForAudioFrameClassification",
    "Wav2Vec2ForCTC",
    "Wav2Vec2ForSequenceClassification",
    "Wav2Vec2ForXVector",
    "Wav2Vec2Model",
    "WavLMConfig",
    "WavLMForAudioFrameClassification",
    "WavLMForCTC",
    "WavLMForSequenceClassification",
    "WavLMForXVector",
    "WavLMModel",
    "Whisper",
    "WhisperConfig",
    "WhisperForAudioClassification",
    "WhisperForCausalLM",
    "XLMRobertaXLConfig",
    "XLMRobertaXLForCausalLM",
    "XLMRobertaXLForMaskedLM",
    "XLMRobertaXLForMultipleChoice",
    "XLMRobertaXLForQuestionAnswering",
    "XLMRobertaXLForSequenceClassification",
    "XLMRobertaXLForTokenClassification",
    "XLMRobertaXLModel",
    "albert",
    "arcee",
    "auto",
    "bart",
    "bert",
    "blip",
    "blip_layers",
    "captions",
    "clip",
    "cohere",
    "deberta_v2",
    "deepseek",
    "depth",
    "depth_anything",
    "derived_heads",
    "detector",
    "detr",
    "detr_masks",
    "dinov2",
    "distilbert",
    "electra",
    "emoji",
    "ernie",
    "ernie4_5",
    "eurobert",
    "exaone4",
    "falcon",
    "falcon_h1",
    "gemma",
    "gemma2",
    "gemma3",
    "gemma4",
    "gguf_export",
    "gguf_models",
    "glm",
    "glosses",
    "gpt2",
    "gpt_neox",
    "gpt_oss",
    "granite",
    "helium",
    "hubert",
    "hunyuan",
    "image_processor",
    "images",
    "jamba",
    "lfm2",
    "lfm2_moe",
    "llama",
    "m2m100",
    "mamba",
    "mamba2",
    "marian",
    "mbart",
    "ministral",
    "mistral",
    "mixtral",
    "mobilebert",
    "modernbert",
    "mpnet",
    "mt5",
    "multi_vector",
    "nanochat",
    "olmo",
    "olmoe",
    "opt",
    "pair_heads",
    "pegasus",
    "phi",
    "phi3",
    "qwen",
    "qwen3_5",
    "qwen3_next",
    "qwen_moe",
    "resnet",
    "roberta",
    "rotary_bert",
    "rwkv7",
    "seed_oss",
    "segformer",
    "segmenter",
    "sentence",
    "smollm3",
    "sound_classifier",
    "sparse_encoder",
    "spoken",
    "stablelm",
    "starcoder2",
    "stories",
    "t5",
    "text_classifier",
    "text_decoder",
    "vit",
    "vits",
    "wav2vec2",
    "wavlm",
    "whisper",
    "xlm_roberta_xl",
]
