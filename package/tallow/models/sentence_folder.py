"""The layout of a sentence-transformers folder: `modules.json` lists its modules, each in a subfolder."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tallow import models
from tallow.errors import CheckpointError
from tallow.io.json_object import parse_list
from tallow.io.model_folder import weight_files
from tallow.models.auto import ENCODERS, model_class
from tallow.models.config import CONFIG, read_entries
from tallow.models.pretrained import PretrainedModel
from tallow.text.tokenizer import CONFIG as TOKENIZER_CONFIG
from tallow.text.tokenizer import FILE as TOKENIZER

MODULES = "modules.json"
TEXT_CONFIG = "sentence_bert_config.json"
PROMPTS = "config_sentence_transformers.json"
STATIC = "StaticEmbedding"  # a kind of module
MAX_DEPTH = 8


def encoder_class(folder: Path) -> type[PretrainedModel]:
    """Return the class of an encoder without a head, whatever head the checkpoint has.

    Raises:  CheckpointError when the folder holds no encoder
    """
    return _bare_class(folder, ENCODERS.values(), "choose a BERT, DistilBERT, ModernBERT or RoBERTa")


def transformer_class(folder: Path) -> type[PretrainedModel]:
    """As `encoder_class`, for a module listed in `modules.json`: it may be a decoder that was trained for embeddings.

    Raises:  CheckpointError when the folder holds neither
    """
    families = [*ENCODERS.values(), *models.DECODER_HEADS]
    return _bare_class(folder, families, "choose an encoder or a decoder of text")


def _bare_class(folder: Path, families: Collection[str], hint: str) -> type[PretrainedModel]:
    name = model_class(folder).__name__
    # The longest name: a Gemma2 is not a Gemma.
    family = max((family for family in families if name.startswith(family)), key=len, default=None)
    if family is None:
        raise CheckpointError(f"{folder / CONFIG}: {name} does not compute embeddings of texts", hint=hint)
    return getattr(models, family + models.DECODER_HEADS.get(family, models.LABELS)[0])


class EncoderFiles(NamedTuple):
    """The files of an encoder's folder.

    Attributes:
        required, optional: names of files that must exist, and of files that are read if they exist.
        weights: subfolders with weights, with a slash at the end; empty for the folder itself.
    """

    required: tuple[str, ...]
    optional: tuple[str, ...] = ()
    weights: tuple[str, ...] = ()


# By kind of module; names are relative to the module's folder.
FILES = {
    "Transformer": EncoderFiles((CONFIG, TOKENIZER), (TOKENIZER_CONFIG, TEXT_CONFIG), ("",)),
    STATIC: EncoderFiles((TOKENIZER,), (TOKENIZER_CONFIG,), ("",)),
    "Pooling": EncoderFiles((CONFIG,)),
    "Dense": EncoderFiles((CONFIG,), (), ("",)),
}


def files_of(modules: bytes | None) -> EncoderFiles:
    """Return the files of the encoder that a `modules.json` describes; None means a folder without that file.

    Raises:  CheckpointError
    """
    parts = [("Transformer", "")] if modules is None else list(_parse_modules(modules, MODULES))
    required, optional, weights = ([], [], []) if modules is None else ([MODULES], [PROMPTS], [])
    for kind, place in parts:
        files = FILES.get(kind, EncoderFiles(()))
        required += [f"{place}/{name}".lstrip("/") for name in files.required]
        optional += [f"{place}/{name}".lstrip("/") for name in files.optional]
        weights += [f"{place}/".lstrip("/") for _ in files.weights]
    return EncoderFiles(tuple(required), tuple(optional), tuple(weights))


def encoder_files(folder: Path) -> list[str]:
    """Return the names of an encoder's files in its folder; none if the folder holds no encoder."""
    modules = folder / MODULES
    try:
        files = files_of(modules.read_bytes() if modules.exists() else None)
        if not all((folder / name).is_file() for name in files.required):
            return []
        places = dict(modules_of(folder))
        if STATIC not in places:
            named = places.get("Transformer")
            encoder_class(folder) if named is None else transformer_class(named)
        weights = [place + name for place in files.weights for name in weight_files(folder / place)]
    except (CheckpointError, OSError):
        return []
    return [*files.required, *weights, *(name for name in files.optional if (folder / name).is_file())]


def parts_of(folder: Path) -> dict[Path, bool]:
    """Return the subfolders of modules, and for each whether tallow reads weights in it."""
    return {
        place: bool(FILES.get(kind, EncoderFiles(())).weights)
        for kind, place in modules_of(folder)
        if place != folder and place.is_dir()
    }


def modules_of(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield the kind and the folder of each module, in order; none for a folder without `modules.json`."""
    path = folder / MODULES
    if path.exists():
        for kind, place in _parse_modules(path.read_bytes(), str(path)):
            yield kind, folder / place


def prompts_of(folder: Path) -> dict[str, Any]:
    """Return the arguments `prompts` and `default_prompt` of a SentenceEncoder, by the folder's files.

    Raises:  CheckpointError for prompts that are no texts, or a default that is none of them
    """
    path = folder / PROMPTS
    entries = read_entries(path) if path.exists() else {}
    prompts, default = entries.get("prompts") or {}, entries.get("default_prompt_name")
    if not isinstance(prompts, dict) or not all(isinstance(text, str) for text in prompts.values()):
        raise CheckpointError(f"{path}: prompts are {prompts!r:.200}; expected texts by name")
    if default is not None and default not in prompts:
        raise CheckpointError(f"{path}: default_prompt_name is {default!r:.80}, which is none of the prompts")
    return {"prompts": prompts, "default_prompt": default}


def _parse_modules(text: bytes, source: str) -> Iterator[tuple[str, str]]:
    """Yield the kind and the subfolder of each module of a `modules.json`."""
    for module in parse_list(text, source, MAX_DEPTH):
        if not isinstance(module, dict):
            raise CheckpointError(f"{source} is not a list of modules")
        place = str(module.get("path", ""))
        if place in (".", "..") or not set("/\\:\0").isdisjoint(place):
            raise CheckpointError(f"{source}: {place!r} is not the name of a subfolder")
        yield str(module.get("type")).rpartition(".")[2], place
