"""The architectures that tallow has: the names in `config.json`, and the classes of `tallow.models`."""

from __future__ import annotations

import re

from tallow import models

ENCODERS = {name: name for name in ("Bert", "DistilBert", "ModernBert", "Roberta")}
ENCODERS |= dict.fromkeys(("Camembert", "XLMRoberta"), "Roberta")
ENCODERS |= {name: name for name in models.RELATIVES}
HEADS = (*models.ENCODER_HEADS, models.CHOICE)
WRITES = "ForConditionalGeneration"
# Entry of `architectures` -> name of the class in tallow.models.
ARCHITECTURES = {
    **{
        name + head: ours + head
        for name, ours in ENCODERS.items()
        for head in (models.RELATIVES[name].heads if name in models.RELATIVES else HEADS)
    },
    **{name + head: name + head for name, heads in models.DECODER_HEADS.items() for head in heads},
    **{f"{name}ForCausalLM": name for name in models.DECODER_HEADS if name != "GPT2"},
    **{name + head: name + head for name, heads in models.IMAGE_HEADS.items() for head in heads},
    **{name: name for name in ("DetrForObjectDetection", "DetrForSegmentation", "DetrModel")},
    "DepthAnythingForDepthEstimation": "DepthAnythingForDepthEstimation",
    **{name + head: name + head for name, heads in models.PAIR_HEADS.items() for head in heads},
    **{name + head: name + head for name, (_, heads) in models.PAIR_RELATIVES.items() for head in heads},
    **{name: name for name in ("BlipForConditionalGeneration", "BlipForQuestionAnswering")},
    "BartForCausalLM": "BartForCausalLM",
    **{name + head: name + head for name, heads in models.SPEECH_HEADS.items() for head in heads},
    **{name: name for name in ("CLIPForImageClassification", "CLIPModel", "CLIPTextModel", "CLIPVisionModel")},
    **{name: name for name in ("CLIPTextModelWithProjection", "CLIPVisionModelWithProjection")},
    **{
        f"{name}ForConditionalGeneration": f"{name}ForConditionalGeneration"
        for name in ("Bart", "M2M100", "MBart", "Pegasus")
    },
    "BertForNextSentencePrediction": "BertForNextSentencePrediction",
    "BertForPreTraining": "BertForPreTraining",
    "BertLMHeadModel": "BertLMHeadModel",
    "CamembertForCausalLM": "RobertaForCausalLM",
    "GPT2DoubleHeadsModel": "GPT2DoubleHeadsModel",
    "GPT2LMHeadModel": "GPT2",
    "MarianMTModel": "MarianMTModel",
    "Qwen3_5ForConditionalGeneration": "Qwen3_5",
    "Qwen3_5MoeForConditionalGeneration": "Qwen3_5Moe",
    "RWForCausalLM": "Falcon",
    "RobertaForCausalLM": "RobertaForCausalLM",
    **{name + end: name + end for name in ("MT5", "T5", "UMT5") for end in ("EncoderModel", WRITES)},
    "T5WithLMHeadModel": "T5ForConditionalGeneration",
    "VitsModel": "VitsModel",
    "WhisperForAudioClassification": "WhisperForAudioClassification",
    "WhisperForCausalLM": "WhisperForCausalLM",
    "WhisperForConditionalGeneration": "Whisper",
    "XLMRobertaForCausalLM": "RobertaForCausalLM",
}

# Early files spell some names in other ways, such as LLaMAForCausalLM.
BY_LETTERS = {name.lower(): kind for name, kind in ARCHITECTURES.items()}
BY_LETTERS["gemma4forconditionalgeneration"] = "Gemma4"  # of which the texts' part loads
# GTE's own code calls its classes New.
BY_LETTERS |= {f"new{head}".lower(): f"Gte{head}" for head in models.RELATIVES["Gte"].heads}

# `model_type` -> architecture, for a config without `architectures`.
MODEL_TYPES = {
    "albert": "AlbertModel",
    "arcee": "ArceeForCausalLM",
    "bart": "BartForConditionalGeneration",
    "bert": "BertModel",
    "blip": "BlipForConditionalGeneration",
    "camembert": "CamembertModel",
    "clip": "CLIPModel",
    "clip_text_model": "CLIPTextModel",
    "clip_vision_model": "CLIPVisionModel",
    "cohere": "CohereForCausalLM",
    "cohere2": "Cohere2ForCausalLM",
    "deberta-v2": "DebertaV2Model",
    "deepseek_v2": "DeepseekV2ForCausalLM",
    "deepseek_v3": "DeepseekV3ForCausalLM",
    "depth_anything": "DepthAnythingForDepthEstimation",
    "detr": "DetrModel",
    "dinov2": "Dinov2Model",
    "distilbert": "DistilBertModel",
    "electra": "ElectraModel",
    "ernie": "ErnieModel",
    "ernie4_5": "Ernie4_5ForCausalLM",
    "eurobert": "EuroBertModel",
    "exaone4": "Exaone4ForCausalLM",
    "falcon": "FalconForCausalLM",
    "falcon_h1": "FalconH1ForCausalLM",
    "gemma": "GemmaForCausalLM",
    "gemma2": "Gemma2ForCausalLM",
    "gemma3_text": "Gemma3ForCausalLM",
    "gemma4_text": "Gemma4ForCausalLM",
    "glm": "GlmForCausalLM",
    "glm4": "Glm4ForCausalLM",
    "gpt2": "GPT2LMHeadModel",
    "gpt_neox": "GPTNeoXForCausalLM",
    "gpt_oss": "GptOssForCausalLM",
    "granite": "GraniteForCausalLM",
    "granitemoehybrid": "GraniteMoeHybridForCausalLM",
    "gte": "GteModel",
    "helium": "HeliumForCausalLM",
    "hubert": "HubertModel",
    "hunyuan_v1_dense": "HunYuanDenseV1ForCausalLM",
    "jamba": "JambaForCausalLM",
    "jina_embeddings_v3": "JinaEmbeddingsV3Model",
    "lfm2": "Lfm2ForCausalLM",
    "lfm2_moe": "Lfm2MoeForCausalLM",
    "mamba": "MambaForCausalLM",
    "mamba2": "Mamba2ForCausalLM",
    "llama": "LlamaForCausalLM",
    "m2m_100": "M2M100ForConditionalGeneration",
    "marian": "MarianMTModel",
    "mbart": "MBartForConditionalGeneration",
    "ministral": "MinistralForCausalLM",
    "ministral3": "Ministral3ForCausalLM",
    "mistral": "MistralForCausalLM",
    "mixtral": "MixtralForCausalLM",
    "mobilebert": "MobileBertModel",
    "modernbert": "ModernBertModel",
    "mpnet": "MPNetModel",
    "mt5": "MT5ForConditionalGeneration",
    "nanochat": "NanoChatForCausalLM",
    "nomic_bert": "NomicBertModel",
    "olmo": "OlmoForCausalLM",
    "olmo2": "Olmo2ForCausalLM",
    "olmo3": "Olmo3ForCausalLM",
    "olmoe": "OlmoeForCausalLM",
    "opt": "OPTForCausalLM",
    "pegasus": "PegasusForConditionalGeneration",
    "phi": "PhiForCausalLM",
    "phi3": "Phi3ForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen2_moe": "Qwen2MoeForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
    "qwen3_5": "Qwen3_5ForCausalLM",
    "qwen3_5_moe": "Qwen3_5MoeForCausalLM",
    "qwen3_5_moe_text": "Qwen3_5MoeForCausalLM",
    "qwen3_5_text": "Qwen3_5ForCausalLM",
    "qwen3_moe": "Qwen3MoeForCausalLM",
    "qwen3_next": "Qwen3NextForCausalLM",
    "resnet": "ResNetModel",
    "roberta": "RobertaModel",
    "rwkv7": "RWKV7ForCausalLM",
    "segformer": "SegformerModel",
    "seed_oss": "SeedOssForCausalLM",
    "smollm3": "SmolLM3ForCausalLM",
    "stablelm": "StableLmForCausalLM",
    "starcoder2": "Starcoder2ForCausalLM",
    "t5": "T5ForConditionalGeneration",
    "umt5": "UMT5ForConditionalGeneration",
    "vit": "ViTModel",
    "vits": "VitsModel",
    "wav2vec2": "Wav2Vec2Model",
    "wavlm": "WavLMModel",
    "whisper": "WhisperForConditionalGeneration",
    "xlm-roberta": "XLMRobertaModel",
    "xlm-roberta-xl": "XLMRobertaXLModel",
}

# `model_type` -> the beginning of the names of its classes.
PREFIXES = {kind: re.sub(r"(Model|For[A-Z]\w*|LMHeadModel|MTModel)$", "", name) for kind, name in MODEL_TYPES.items()}
# The types of the encoders of waveforms, which share heads with encoders of texts by name.
SPEECH = tuple(kind for kind, prefix in PREFIXES.items() if prefix in models.SPEECH_HEADS)
