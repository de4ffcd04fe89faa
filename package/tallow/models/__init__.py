"""Models: one file for each architecture. `AutoModel` finds out which a folder holds."""

from tallow.names import names_of

ENCODER_HEADS = ("Model", "ForMaskedLM", "ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering")
_CLASSES = {
    "auto": ("AutoModel",),
    "bert": ("BertConfig", *(f"Bert{head}" for head in ENCODER_HEADS)),
    "distilbert": ("DistilBertConfig", *(f"DistilBert{head}" for head in ENCODER_HEADS)),
    "falcon": ("Falcon", "FalconConfig", "FalconModel"),
    "gemma": ("Gemma", "GemmaConfig"),
    "gemma2": ("Gemma2", "Gemma2Config"),
    "gpt2": ("GPT2", "GPT2Config", "GPT2Model"),
    "llama": ("Llama", "LlamaConfig"),
    "mistral": ("Mistral", "MistralConfig"),
    "phi3": ("Phi3", "Phi3Config"),
    "qwen": ("Qwen2", "Qwen2Config", "Qwen3", "Qwen3Config"),
    "sentence": ("SentenceEncoder",),
    "whisper": ("Whisper", "WhisperConfig"),
    "roberta": ("RobertaConfig", *(f"Roberta{head}" for head in ENCODER_HEADS)),
}
_LATER = {name: f"tallow.models.{module}:{name}" for module, names in _CLASSES.items() for name in names}
_LATER |= {module: f"tallow.models.{module}" for module in (*_CLASSES, "gguf_llama", "spoken", "stories")}

__all__ = list(_LATER)

__getattr__, __dir__ = names_of(__name__, _LATER)
