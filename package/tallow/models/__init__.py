"""Models, one file per architecture. `AutoModel` detects the architecture of a folder.

decoders, encoders, seq2seq, speech, vision, whisper    the architectures, and the bases of each kind
gguf                                                    reads and writes GGUF files
built_in                                                the models that come with the package

The other files are what all of them have in common: configs, loading and generation.
"""

from typing import TYPE_CHECKING, NamedTuple

from tallow.lazy_names import names_of

LABELS = ("Model", "ForSequenceClassification", "ForTokenClassification")
PIXELS = "ForSemanticSegmentation"
# Encoders of images, with their heads.
IMAGE_HEADS = {
    "Dinov2": ("Model", "ForImageClassification", "Backbone"),
    "ResNet": ("Model", "ForImageClassification", "Backbone"),
    "Segformer": ("Model", "ForImageClassification", PIXELS),
    "ViT": ("Model", "ForImageClassification", "ForMaskedImageModeling"),
}
ENCODER_HEADS = (*LABELS, "ForQuestionAnswering", "ForMaskedLM")
CHOICE = "ForMultipleChoice"
PRETRAINING = ("ForNextSentencePrediction", "ForPreTraining")


class Relative(NamedTuple):
    """A family of encoders that is built on another.

    Attributes:
        module: its file.
        heads: the model without a head, and the heads.
        own: which of them have classes of their own; the others follow from BERT's and RoBERTa's.
    """

    module: str
    heads: tuple[str, ...]
    own: tuple[str, ...]


RELATIVES = {
    "Albert": Relative(
        "albert", (*ENCODER_HEADS, CHOICE, "ForPreTraining"), ("Model", "ForMaskedLM", "ForPreTraining")
    ),
    "DebertaV2": Relative(
        "deberta_v2", (*ENCODER_HEADS, CHOICE), ("Model", "ForMaskedLM", "ForSequenceClassification")
    ),
    "Electra": Relative(
        "electra",
        (*ENCODER_HEADS, "ForPreTraining", "ForCausalLM", CHOICE),
        ("Model", "ForPreTraining", "ForMaskedLM", "ForCausalLM", "ForSequenceClassification", CHOICE),
    ),
    "Ernie": Relative("ernie", (*ENCODER_HEADS, CHOICE, *PRETRAINING, "ForCausalLM"), ("Model",)),
    "EuroBert": Relative("eurobert", (*LABELS, "ForMaskedLM"), (*LABELS, "ForMaskedLM")),
    "Gte": Relative("rotary_bert", (*LABELS, "ForMaskedLM"), ("Model", "ForMaskedLM")),
    "JinaEmbeddingsV3": Relative("rotary_bert", ENCODER_HEADS, ("Model",)),
    "MPNet": Relative("mpnet", (*ENCODER_HEADS, CHOICE), ("Model",)),
    "MobileBert": Relative("mobilebert", (*ENCODER_HEADS, CHOICE, *PRETRAINING), ("Model",)),
    "NomicBert": Relative("rotary_bert", (*LABELS, "ForMaskedLM"), ("Model",)),
    "XLMRobertaXL": Relative("xlm_roberta_xl", (*ENCODER_HEADS, CHOICE, "ForCausalLM"), ("Model",)),
}
# For each family of decoders: the model without a head, and the heads other than the language model's.
DECODER_HEADS = {
    **dict.fromkeys(("Falcon", "GPT2", "GPTNeoX", "Llama", "Mistral", "Mixtral"), (*LABELS, "ForQuestionAnswering")),
    **dict.fromkeys(("Qwen2", "Qwen2Moe", "Qwen3", "Qwen3Moe", "Qwen3Next"), (*LABELS, "ForQuestionAnswering")),
    **dict.fromkeys(("Arcee", "Exaone4", "Ministral", "Ministral3"), (*LABELS, "ForQuestionAnswering")),
    **dict.fromkeys(("SeedOss", "SmolLM3"), (*LABELS, "ForQuestionAnswering")),
    **dict.fromkeys(("DeepseekV3", "Gemma", "Gemma2", "Glm", "Glm4", "GptOss", "Helium"), LABELS),
    **dict.fromkeys(("Phi", "Phi3", "StableLm", "Starcoder2"), LABELS),
    **dict.fromkeys(("DeepseekV2", "HunYuanDenseV1"), ("Model", "ForSequenceClassification")),
    **dict.fromkeys(("Jamba", "Olmo", "Olmo2", "Olmo3"), ("Model", "ForSequenceClassification")),
    "OPT": ("Model", "ForSequenceClassification", "ForQuestionAnswering"),
    **dict.fromkeys(("Cohere", "Cohere2", "Ernie4_5", "Granite", "GraniteMoeHybrid", "NanoChat"), ("Model",)),
    **dict.fromkeys(("FalconH1", "Lfm2", "Lfm2Moe", "Mamba", "Mamba2", "Olmoe", "RWKV7"), ("Model",)),
    # Their other names are for texts with images.
    **dict.fromkeys(("Gemma3", "Qwen3_5"), ("TextModel", "TextForSequenceClassification")),
    "Gemma4": ("TextModel",),
    "Qwen3_5Moe": ("TextModel",),
}
# Heads over an encoder and a decoder that do not write.
PAIR_HEADS = {
    "Bart": ("ForSequenceClassification", "ForQuestionAnswering"),
    "T5": ("ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering"),
}
# Encoders of waveforms, with their heads.
SOUND_HEADS = ("ForSequenceClassification", "ForAudioFrameClassification", "ForXVector")
SPEECH_HEADS = {
    "Hubert": ("Model", "ForCTC", "ForSequenceClassification"),
    "Wav2Vec2": ("Model", "ForCTC", *SOUND_HEADS),
    "WavLM": ("Model", "ForCTC", *SOUND_HEADS),
}
# Families with the heads of another.
PAIR_RELATIVES = {
    "MBart": ("Bart", (*PAIR_HEADS["Bart"], "ForCausalLM")),
    **dict.fromkeys(("Marian", "Pegasus"), ("Bart", ("ForCausalLM",))),
    **dict.fromkeys(("MT5", "UMT5"), ("T5", PAIR_HEADS["T5"])),
}
# Classes that follow by rule from others: choices among texts, heads of decoders and of relatives of BERT, BART and T5.
DERIVED = (
    *(name + CHOICE for name in ("Bert", "DistilBert", "ModernBert", "Roberta")),
    *(name + head for name, heads in DECODER_HEADS.items() for head in heads[1:]),
    *(name + head for name, kind in RELATIVES.items() for head in kind.heads if head not in kind.own),
    *(name + head for name, (_, heads) in PAIR_RELATIVES.items() for head in heads),
)


def _decoders(*names: str) -> tuple[str, ...]:
    return tuple(name + part for name in names for part in ("", "Config", DECODER_HEADS[name][0]))


_CLASSES = {
    "auto": ("AutoModel",),
    "whisper": ("Whisper", "WhisperConfig"),
    "decoders.arcee": _decoders("Arcee"),
    "decoders.cohere": _decoders("Cohere", "Cohere2"),
    "decoders.deepseek": _decoders("DeepseekV2", "DeepseekV3"),
    "decoders.ernie4_5": _decoders("Ernie4_5"),
    "decoders.exaone4": _decoders("Exaone4"),
    "decoders.falcon": _decoders("Falcon"),
    "decoders.falcon_h1": _decoders("FalconH1"),
    "decoders.gemma": _decoders("Gemma"),
    "decoders.gemma2": _decoders("Gemma2"),
    "decoders.gemma3": _decoders("Gemma3"),
    "decoders.gemma4": _decoders("Gemma4"),
    "decoders.glm": _decoders("Glm", "Glm4"),
    "decoders.gpt2": (*_decoders("GPT2"), "GPT2DoubleHeadsModel"),
    "decoders.gpt_oss": _decoders("GptOss"),
    "decoders.gpt_neox": _decoders("GPTNeoX"),
    "decoders.granite": _decoders("Granite", "GraniteMoeHybrid"),
    "decoders.helium": _decoders("Helium"),
    "decoders.hunyuan": _decoders("HunYuanDenseV1"),
    "decoders.jamba": _decoders("Jamba"),
    "decoders.lfm2": _decoders("Lfm2"),
    "decoders.lfm2_moe": _decoders("Lfm2Moe"),
    "decoders.mamba": _decoders("Mamba"),
    "decoders.mamba2": _decoders("Mamba2"),
    "decoders.llama": _decoders("Llama"),
    "decoders.mistral": _decoders("Mistral"),
    "decoders.mixtral": _decoders("Mixtral"),
    "decoders.ministral": _decoders("Ministral", "Ministral3"),
    "decoders.nanochat": _decoders("NanoChat"),
    "decoders.olmo": _decoders("Olmo", "Olmo2", "Olmo3"),
    "decoders.olmoe": _decoders("Olmoe"),
    "decoders.opt": _decoders("OPT"),
    "decoders.phi": _decoders("Phi"),
    "decoders.seed_oss": _decoders("SeedOss"),
    "decoders.smollm3": _decoders("SmolLM3"),
    "decoders.stablelm": _decoders("StableLm"),
    "decoders.starcoder2": _decoders("Starcoder2"),
    "decoders.phi3": _decoders("Phi3"),
    "decoders.qwen": _decoders("Qwen2", "Qwen3"),
    "decoders.qwen3_5": _decoders("Qwen3_5", "Qwen3_5Moe"),
    "decoders.qwen3_next": _decoders("Qwen3Next"),
    "decoders.qwen_moe": _decoders("Qwen2Moe", "Qwen3Moe"),
    "decoders.rwkv7": _decoders("RWKV7"),
    "encoders.bert": (
        *("BertConfig", "BertForNextSentencePrediction", "BertForPreTraining", "BertLMHeadModel"),
        *(f"Bert{head}" for head in ENCODER_HEADS),
    ),
    "encoders.distilbert": ("DistilBertConfig", *(f"DistilBert{head}" for head in ENCODER_HEADS)),
    "encoders.modernbert": ("ModernBertConfig", *(f"ModernBert{head}" for head in ENCODER_HEADS)),
    "encoders.roberta": ("RobertaConfig", "RobertaForCausalLM", *(f"Roberta{head}" for head in ENCODER_HEADS)),
    "encoders.sentence": ("SentenceEncoder",),
    "encoders.multi_vector": ("MultiVectorEncoder",),
    "encoders.sparse_encoder": ("SparseEncoder",),
    "encoders.text_classifier": ("TextClassifier",),
    "seq2seq.bart": ("BartConfig", "BartForConditionalGeneration"),
    "seq2seq.pair_heads": tuple(f"{name}{head}" for name, heads in PAIR_HEADS.items() for head in heads),
    "seq2seq.text_decoder": ("BartForCausalLM",),
    "seq2seq.m2m100": ("M2M100Config", "M2M100ForConditionalGeneration"),
    "seq2seq.marian": ("MarianConfig", "MarianMTModel"),
    "seq2seq.mbart": ("MBartConfig", "MBartForConditionalGeneration"),
    "seq2seq.pegasus": ("PegasusConfig", "PegasusForConditionalGeneration"),
    "seq2seq.t5": ("T5Config", "T5EncoderModel", "T5ForConditionalGeneration"),
    "seq2seq.mt5": tuple(
        name + part for name in ("MT5", "UMT5") for part in ("Config", "EncoderModel", "ForConditionalGeneration")
    ),
    **{
        f"speech.{name.lower()}": (f"{name}Config", *(name + head for head in heads))
        for name, heads in SPEECH_HEADS.items()
    },
    "speech.vits": ("VitsConfig", "VitsModel"),
    "vision.blip": ("BlipForConditionalGeneration", "BlipForQuestionAnswering"),
    "vision.blip_layers": ("BlipConfig",),
    "vision.captions": ("ImageCaptioner",),
    "vision.clip": (
        *("CLIPConfig", "CLIPForImageClassification", "CLIPModel"),
        *(f"CLIP{part}{kind}" for part in ("Text", "Vision") for kind in ("Config", "Model", "ModelWithProjection")),
    ),
    "vision.depth": ("DepthEstimator",),
    "vision.depth_anything": ("DepthAnythingConfig", "DepthAnythingForDepthEstimation"),
    "vision.detector": ("ObjectDetector",),
    "vision.detr": ("DetrConfig", "DetrForObjectDetection", "DetrModel"),
    "vision.detr_masks": ("DetrForSegmentation",),
    "vision.image_processor": ("ImageProcessor",),
    "vision.images": ("ImageClassifier", "ImageEncoder"),
    "vision.segmenter": ("ImageSegmenter",),
    **{
        f"vision.{name.lower()}": (f"{name}Config", *(name + head for head in heads))
        for name, heads in IMAGE_HEADS.items()
    },
    "whisper.sound_classifier": ("WhisperForAudioClassification",),
    "whisper.text_decoder": ("WhisperForCausalLM",),
}
_LAZY = {name: f"tallow.models.{module}:{name}" for module, names in _CLASSES.items() for name in names}
_LAZY |= {
    name + part: f"tallow.models.encoders.{kind.module}:{name}{part}"
    for name, kind in RELATIVES.items()
    for part in ("Config", *kind.own)
}
_LAZY |= {name: f"tallow.models.derived_heads:{name}" for name in DERIVED}
# Modules keep the names that they had before they lay in folders.
_MODULES = (
    *_CLASSES,
    *(f"encoders.{kind.module}" for kind in RELATIVES.values()),
    "derived_heads",
    "built_in.emoji",
    "built_in.glosses",
    "built_in.spoken",
    "built_in.stories",
)
_LAZY |= {module.rpartition(".")[2]: f"tallow.models.{module}" for module in _MODULES}
_LAZY |= {f"gguf_{name}": f"tallow.models.gguf.{name}" for name in ("export", "models")}

__all__ = list(_LAZY)

if TYPE_CHECKING:
    from tallow.signatures.lazy_models import *  # noqa: F403

__getattr__, __dir__ = names_of(__name__, _LAZY)
