"""Models, one file per architecture. `AutoModel` detects the architecture of a folder."""

from tallow.core.lazy_names import names_of

LABELS = ("Model", "ForSequenceClassification", "ForTokenClassification")
IMAGE_HEADS = ("Model", "ForImageClassification")
ENCODER_HEADS = (*LABELS, "ForQuestionAnswering", "ForMaskedLM")
# For each family of decoders: the model without a head, and the heads other than the language model's.
DECODER_HEADS = {
    **dict.fromkeys(("Falcon", "GPT2", "Llama", "Mistral", "Qwen2", "Qwen3"), (*LABELS, "ForQuestionAnswering")),
    **dict.fromkeys(("Gemma", "Gemma2", "Phi3"), LABELS),
    **dict.fromkeys(("Mixtral", "Olmoe", "Qwen2Moe", "Qwen3Moe"), ("Model",)),
    "Gemma3": ("TextModel", "TextForSequenceClassification"),  # the other names are for texts with images
}


def _decoders(*names: str) -> tuple[str, ...]:
    return tuple(name + part for name in names for part in ("", "Config", *DECODER_HEADS[name]))


_CLASSES = {
    "auto": ("AutoModel",),
    "bart": ("BartConfig", "BartForConditionalGeneration"),
    "bert": ("BertConfig", "BertForPreTraining", "BertLMHeadModel", *(f"Bert{head}" for head in ENCODER_HEADS)),
    "clip": (
        *("CLIPConfig", "CLIPModel"),
        *(f"CLIP{part}{kind}" for part in ("Text", "Vision") for kind in ("Config", "Model", "ModelWithProjection")),
    ),
    "dinov2": ("Dinov2Config", *(f"Dinov2{head}" for head in IMAGE_HEADS)),
    "distilbert": ("DistilBertConfig", *(f"DistilBert{head}" for head in ENCODER_HEADS)),
    "falcon": _decoders("Falcon"),
    "gemma": _decoders("Gemma"),
    "gemma2": _decoders("Gemma2"),
    "gemma3": _decoders("Gemma3"),
    "gpt2": _decoders("GPT2"),
    "image_processor": ("ImageProcessor",),
    "images": ("ImageClassifier", "ImageEncoder"),
    "llama": _decoders("Llama"),
    "marian": ("MarianConfig", "MarianMTModel"),
    "mistral": _decoders("Mistral"),
    "mixtral": _decoders("Mixtral"),
    "modernbert": ("ModernBertConfig", *(f"ModernBert{head}" for head in ENCODER_HEADS)),
    "olmoe": _decoders("Olmoe"),
    "phi3": _decoders("Phi3"),
    "qwen": _decoders("Qwen2", "Qwen3"),
    "qwen_moe": _decoders("Qwen2Moe", "Qwen3Moe"),
    "sentence": ("SentenceEncoder",),
    "sparse_encoder": ("SparseEncoder",),
    "t5": ("T5Config", "T5EncoderModel", "T5ForConditionalGeneration"),
    "text_classifier": ("TextClassifier",),
    "vit": ("ViTConfig", *(f"ViT{head}" for head in IMAGE_HEADS)),
    "whisper": ("Whisper", "WhisperConfig"),
    "roberta": ("RobertaConfig", "RobertaForCausalLM", *(f"Roberta{head}" for head in ENCODER_HEADS)),
}
_LAZY = {name: f"tallow.models.{module}:{name}" for module, names in _CLASSES.items() for name in names}
_LAZY |= {module: f"tallow.models.{module}" for module in (*_CLASSES, "gguf_models", "glosses", "spoken", "stories")}

__all__ = list(_LAZY)

__getattr__, __dir__ = names_of(__name__, _LAZY)
