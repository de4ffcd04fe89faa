"""Export a trained language model to a folder for tallow and transformers."""

from __future__ import annotations

from pathlib import Path

from tallow import dtypes
from tallow.io import safetensors
from tallow.io.model_folder import copy_descriptions
from tallow.io.whole_folder import atomic_folder
from tallow.models.causal_lm import CausalLM
from tallow.models.config import CONFIG, DTYPE_NAMES, read_entries, write_entries
from tallow.models.decoders.llama import Llama
from tallow.models.decoders.llama_formats import save_hugging_face


def export(model: CausalLM, folder: Path) -> None:
    """Write float32 weights and a config; for a loaded model also its tokenizer and other files.

    The folder is replaced as a whole; other files in it stay.

    Raises:  OSError
    """
    if model.folder is None:
        assert isinstance(model, Llama)
        save_hugging_face(model, folder, dtypes.float32)
        return
    state = {name: tensor.detach().cpu().float() for name, tensor in model.state_dict().items()}
    entries = read_entries(model.folder / CONFIG)
    entries = {name: value for name, value in entries.items() if name not in DTYPE_NAMES}
    with atomic_folder(folder) as stage:
        copy_descriptions(model.folder, stage)
        safetensors.save(state, stage / "model.safetensors", {"format": "pt"})
        write_entries(entries | {"torch_dtype": dtypes.float32.name}, stage / CONFIG)
