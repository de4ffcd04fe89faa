"""Load the model that a folder's `config.json` names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tallow import models
from tallow.errors import CheckpointError
from tallow.hub import local_model
from tallow.lazy_names import import_name
from tallow.models import loading
from tallow.models.architectures import BY_LETTERS, MODEL_TYPES
from tallow.models.config import CONFIG, read_entries
from tallow.models.gguf import models as gguf_models
from tallow.models.pretrained import PretrainedModel


class AutoModel(loading.FromPretrained):
    """Loads a folder with the class of its architecture.

    Example:
        model = AutoModel.from_pretrained("TinyLlama/TinyLlama-1.1B-Chat-v1.0", dtype=tl.bfloat16)
        model = AutoModel.from_pretrained("Qwen/Qwen3-0.6B-GGUF:Qwen3-0.6B-Q8_0.gguf")
    """

    locate = staticmethod(local_model)

    @classmethod
    def from_pretrained(  # type: ignore[override]  # of the class that its config names, not of this one
        cls, name: str | Path, *args: Any, gguf_file: str | None = None, via: str | None = None, **options: Any
    ) -> PretrainedModel:
        """Load a local Hugging Face folder, a Hub repository, or a GGUF file, as the model its config names.

        Args:
            name: as in the models' own `from_pretrained`; or a GGUF file, local or `owner/repository:file.gguf`.
            args, options: as in the models' own. For a GGUF file, dtype None means float32, and on the CPU matrices
                that stay as in the file if they are quantised or in half precision, for inference; with `quant`,
                matrices that are quantised already stay as they are; it has no `config.json`, as `strict` needs.
            gguf_file: a GGUF file in the folder or repository, as in transformers.
            via: "transformers" loads the class that the installed package `transformers` has for the config, with
                tallow in the place of PyTorch: an architecture that tallow has no file for. It takes `dtype`,
                `device`, `revision` and `token`. None means tallow's own class.

        Raises:  CheckpointError for an architecture that tallow does not have, and as the model's own
        """
        if via is not None:
            loaded_by_it: Any = import_name("tallow.compat.via:load_model")(name, via, *args, **options)
            return loaded_by_it
        if gguf_file is not None:
            name = Path(name) / gguf_file if Path(name).is_dir() else f"{name}:{gguf_file}"
        loaded: Any = super().from_pretrained(name, *args, **options)
        return loaded

    @classmethod
    def read_path(cls, path: Path, dtype: Any, device: Any, quant: str | None, strict: bool) -> Any:
        if path.is_file():
            return loading.quantized(gguf_models.load(path, dtype, device), quant, dtype)
        return loading.read(model_class(path), path, dtype, device, quant, strict)


def model_class(folder: str | Path) -> type[PretrainedModel]:
    """Return the class that loads `folder`.  Raises: CheckpointError for an unsupported architecture"""
    path = Path(folder) / CONFIG
    entries = read_entries(path)
    architectures = entries.get("architectures")
    if not isinstance(architectures, list):
        kind = entries.get("model_type")
        architectures = [MODEL_TYPES[kind]] if isinstance(kind, str) and kind in MODEL_TYPES else []
    for name in architectures:
        if isinstance(name, str) and name.lower() in BY_LETTERS:
            return getattr(models, BY_LETTERS[name.lower()])
    named = repr(entries["model_type"]) if "model_type" in entries else "a model without model_type"
    kind = ", ".join(map(str, architectures)) or named
    raise CheckpointError(
        f"{path}: tallow does not support {kind:.200}",
        hint='the installed package transformers may run it: AutoModel.from_pretrained(name, via="transformers"), '
        f'tl.pipeline(task, name, via="transformers"), --via transformers; or take one of {", ".join(MODEL_TYPES)}',
    )
