"""What lies where in a folder of sentence-transformers: `modules.json` names its parts, each in a folder of its own."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

from tallow import models
from tallow.errors import CheckpointError
from tallow.io.json_object import parse_list
from tallow.io.model_folder import weight_files
from tallow.models.auto import ENCODERS, model_class
from tallow.models.config import CONFIG
from tallow.models.pretrained import PretrainedModel
from tallow.text.tokenizer import CONFIG as TOKENIZER_CONFIG
from tallow.text.tokenizer import FILE as TOKENIZER

MODULES = "modules.json"
TEXT_CONFIG = "sentence_bert_config.json"
MAX_DEPTH = 8


def encoder_class(folder: Path) -> type[PretrainedModel]:
    """The class of the encoder alone, whatever head its checkpoint has.  Raises: CheckpointError for no encoder"""
    return _bare_class(folder, ENCODERS.values(), "choose a BERT, DistilBERT or RoBERTa")


def transformer_class(folder: Path) -> type[PretrainedModel]:
    """As `encoder_class`, of a part that a folder of sentence-transformers names: it may be a decoder too, which was
    trained to make vectors then.  Raises: CheckpointError for neither"""
    families = [*ENCODERS.values(), *models.DECODER_HEADS]
    return _bare_class(folder, families, "choose an encoder or a decoder of text")


def _bare_class(folder: Path, families: Collection[str], mend: str) -> type[PretrainedModel]:
    name = model_class(folder).__name__
    found = max((family for family in families if name.startswith(family)), key=len, default=None)  # Gemma2 no Gemma
    if found is None:
        raise CheckpointError(f"{folder / CONFIG} is of {name}, which makes no vectors of texts", mend=mend)
    return getattr(models, f"{found}Model")


class EncoderFiles(NamedTuple):
    """Names of files in an encoder's folder: those that it needs, and those that are read where they are there; and the
    folders in it that hold weights, empty or with a slash at the end."""

    required: tuple[str, ...]
    optional: tuple[str, ...] = ()
    weights: tuple[str, ...] = ()


# Of each kind of module, in its own folder.
FILES = {
    "Transformer": EncoderFiles((CONFIG, TOKENIZER), (TOKENIZER_CONFIG, TEXT_CONFIG), ("",)),
    "Pooling": EncoderFiles((CONFIG,)),
    "Dense": EncoderFiles((CONFIG,), (), ("",)),
}


def files_of(modules: bytes | None) -> EncoderFiles:
    """The files of the encoder that this `modules.json` describes; of a folder without one if None.

    Raises:  CheckpointError
    """
    parts = [("Transformer", "")] if modules is None else list(_parse_modules(modules, MODULES))
    required, optional, weights = ([] if modules is None else [MODULES]), [], []
    for kind, place in parts:
        files = FILES.get(kind, EncoderFiles(()))
        required += [f"{place}/{name}".lstrip("/") for name in files.required]
        optional += [f"{place}/{name}".lstrip("/") for name in files.optional]
        weights += [f"{place}/".lstrip("/") for _ in files.weights]
    return EncoderFiles(tuple(required), tuple(optional), tuple(weights))


def encoder_files(folder: Path) -> list[str]:
    """The files of an encoder, by their names in its folder; none where the folder holds no encoder."""
    modules = folder / MODULES
    try:
        files = files_of(modules.read_bytes() if modules.exists() else None)
        if not all((folder / name).is_file() for name in files.required):
            return []
        named = next((place for kind, place in modules_of(folder) if kind == "Transformer"), None)
        encoder_class(folder) if named is None else transformer_class(named)
        weights = [place + name for place in files.weights for name in weight_files(folder / place)]
    except (CheckpointError, OSError):
        return []
    return [*files.required, *weights, *(name for name in files.optional if (folder / name).is_file())]


def parts_of(folder: Path) -> dict[Path, bool]:
    """The folders of the parts that lie in folders of their own, and of each whether tallow reads weights in it."""
    return {
        place: bool(FILES.get(kind, EncoderFiles(())).weights)
        for kind, place in modules_of(folder)
        if place != folder and place.is_dir()
    }


def modules_of(folder: Path) -> Iterator[tuple[str, Path]]:
    """The kind and the folder of each part, in order; none for a folder that does not name them."""
    path = folder / MODULES
    if path.exists():
        for kind, place in _parse_modules(path.read_bytes(), str(path)):
            yield kind, folder / place


def _parse_modules(text: bytes, source: str) -> Iterator[tuple[str, str]]:
    """The kind and the place of each part of a `modules.json`."""
    for module in parse_list(text, source, MAX_DEPTH):
        if not isinstance(module, dict):
            raise CheckpointError(f"{source} is not a list of modules")
        place = str(module.get("path", ""))
        if place in (".", "..") or not set("/\\:\0").isdisjoint(place):
            raise CheckpointError(f"{source}: {place!r} is no name of a folder in it")
        yield str(module.get("type")).rpartition(".")[2], place
