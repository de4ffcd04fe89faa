"""The model that a folder's `config.json` asks for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tallow import models
from tallow.errors import CheckpointError
from tallow.hub import local_model
from tallow.models import gguf_llama
from tallow.models.config import CONFIG, read_entries
from tallow.models.pretrained import PretrainedModel

ENCODERS = {"Bert": "Bert", "DistilBert": "DistilBert", "Roberta": "Roberta", "XLMRoberta": "Roberta"}
# What `architectures` says -> the class's name in tallow.models.
ARCHITECTURES = {
    **{name + head: ours + head for name, ours in ENCODERS.items() for head in models.ENCODER_HEADS},
    **{name + head: name + head for name, heads in models.DECODER_HEADS.items() for head in heads},
    **{f"{name}ForCausalLM": name for name in models.DECODER_HEADS if name != "GPT2"},
    "BertForPreTraining": "BertForPreTraining",
    "BertLMHeadModel": "BertLMHeadModel",
    "GPT2LMHeadModel": "GPT2",
    "RWForCausalLM": "Falcon",
    "RobertaForCausalLM": "RobertaForCausalLM",
    "WhisperForConditionalGeneration": "Whisper",
    "XLMRobertaForCausalLM": "RobertaForCausalLM",
}

# What `model_type` says, for a config without architectures -> an architecture.
MODEL_TYPES = {
    "bert": "BertModel",
    "distilbert": "DistilBertModel",
    "falcon": "FalconForCausalLM",
    "gemma": "GemmaForCausalLM",
    "gemma2": "Gemma2ForCausalLM",
    "gpt2": "GPT2LMHeadModel",
    "llama": "LlamaForCausalLM",
    "mistral": "MistralForCausalLM",
    "phi3": "Phi3ForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
    "roberta": "RobertaModel",
    "whisper": "WhisperForConditionalGeneration",
    "xlm-roberta": "XLMRobertaModel",
}


class AutoModel:
    """Finds out what a folder holds.

    Example:
        model = AutoModel.from_pretrained("TinyLlama/TinyLlama-1.1B-Chat-v1.0", dtype=tl.bfloat16)
        model = AutoModel.from_pretrained("Qwen/Qwen3-0.6B-GGUF:Qwen3-0.6B-Q8_0.gguf")
    """

    @staticmethod
    def from_pretrained(
        name: str | Path,
        dtype: Any = None,
        device: Any = None,
        *,
        gguf_file: str | None = None,
        revision: str | None = None,
        token: str | None = None,
    ) -> Any:
        """Load a folder of Hugging Face's, or a repository of its Hub, as the model that its `config.json` names; or a
        GGUF file.

        Args:
            name: as the models' own `from_pretrained`; or a GGUF file, here or `owner/repository:file.gguf` of the Hub.
            dtype: as the models' own; of a GGUF file, None means float32.
            gguf_file: a file of the folder or the repository, as in transformers.

        Raises:  CheckpointError for a model that tallow does not have, and as the model's own
        """
        if gguf_file is not None:
            name = Path(name) / gguf_file if Path(name).is_dir() else f"{name}:{gguf_file}"
        path = local_model(name, revision=revision, token=token)
        if path.is_file():
            return gguf_llama.load(path, dtype, device)
        return model_class(path).from_pretrained(path, dtype, device)


def model_class(folder: str | Path) -> type[PretrainedModel]:
    """The class that loads `folder`.  Raises: CheckpointError for a model that tallow does not have"""
    path = Path(folder) / CONFIG
    entries = read_entries(path)
    named = entries.get("architectures")
    if not isinstance(named, list):
        kind = entries.get("model_type")
        named = [MODEL_TYPES[kind]] if isinstance(kind, str) and kind in MODEL_TYPES else []
    for name in named:
        if isinstance(name, str) and name in ARCHITECTURES:
            return getattr(models, ARCHITECTURES[name])
    kind = ", ".join(map(str, named)) or repr(entries.get("model_type"))
    raise CheckpointError(
        f"{path} is of {kind:.200}, which tallow does not have", mend=f"it has {', '.join(MODEL_TYPES)}"
    )
