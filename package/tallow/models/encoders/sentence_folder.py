"""The layout of a sentence-transformers folder: `modules.json` lists its modules, each in a subfolder."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tallow import models
from tallow.errors import CheckpointError
from tallow.io.json_object import parse_list
from tallow.io.model_folder import weight_files
from tallow.io.regular import read_regular
from tallow.models.architectures import ENCODERS
from tallow.models.auto import model_class
from tallow.models.config import CONFIG, read_entries
from tallow.models.pretrained import PretrainedModel
from tallow.text.tokenizer_folder import FILES as TOKENIZER
from tallow.text.tokenizer_folder import SETTINGS, needed_files

MODULES = "modules.json"
# The limit of a text and its case: the first that exists. Older versions of sentence-transformers name the model.
TEXT_CONFIGS = tuple(
    f"sentence_{model}_config.json"
    for model in ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")
)
PROMPTS = "config_sentence_transformers.json"
PACKAGES = ("sentence_transformers.", "pylate.")
STATIC = "StaticEmbedding"  # a kind of module
MAX_DEPTH = 8


# Family -> the class of its model without a head.
_ENCODERS = {name: f"{name}Model" for name in ENCODERS.values()}
_TRANSFORMERS = {
    **_ENCODERS,
    **{name: name + heads[0] for name, heads in models.DECODER_HEADS.items()},
    **{name: f"{name}EncoderModel" for name in ("MT5", "T5", "UMT5")},
}


def encoder_class(folder: Path) -> type[PretrainedModel]:
    """Return the class of an encoder without a head, whatever head the checkpoint has.

    Raises:  CheckpointError when the folder holds no encoder
    """
    return _bare_class(folder, _ENCODERS, "choose an encoder of texts, such as a BERT")


def transformer_class(folder: Path) -> type[PretrainedModel]:
    """As `encoder_class`, for a module listed in `modules.json`: it may be a decoder that was trained for embeddings,
    or the encoder of a T5.

    Raises:  CheckpointError when the folder holds none of them
    """
    return _bare_class(folder, _TRANSFORMERS, "choose an encoder or a decoder of text, or a T5")


def _bare_class(folder: Path, families: Mapping[str, str], hint: str) -> type[PretrainedModel]:
    name = model_class(folder).__name__
    # The longest name: a Gemma2 is not a Gemma.
    family = max((family for family in families if name.startswith(family)), key=len, default=None)
    if family is None:
        raise CheckpointError(f"{folder / CONFIG}: {name} does not compute embeddings of texts", hint=hint)
    return getattr(models, families[family])


class EncoderFiles(NamedTuple):
    """The files of an encoder's folder.

    Attributes:
        required, optional: names of files that must exist, and of files that are read if they exist.
        weights: subfolders with weights, with a slash at the end; empty for the folder itself.
        tokenizers: for each tokenizer the sets of files that may have it, as in `needed_files`.
    """

    required: tuple[str, ...]
    optional: tuple[str, ...] = ()
    weights: tuple[str, ...] = ()
    tokenizers: tuple[tuple[tuple[str, ...], ...], ...] = ()


# By kind of module; names are relative to the module's folder.
FILES = {
    "Transformer": EncoderFiles((CONFIG,), (*SETTINGS, *TEXT_CONFIGS), ("",), (TOKENIZER,)),
    STATIC: EncoderFiles((), SETTINGS, ("",), (TOKENIZER,)),
    "Pooling": EncoderFiles((CONFIG,)),
    "Dense": EncoderFiles((CONFIG,), (), ("",)),
    "LayerNorm": EncoderFiles((CONFIG,), (), ("",)),
    "Normalize": EncoderFiles((), (CONFIG,)),
    "LogitScore": EncoderFiles((CONFIG,)),
    "MultiVectorMask": EncoderFiles((CONFIG,)),
}


def files_of(modules: bytes | None) -> EncoderFiles:
    """Return the files of the encoder that a `modules.json` describes; None means a folder without that file.

    Raises:  CheckpointError
    """
    parts = [("Transformer", "")] if modules is None else list(_parse_modules(modules, MODULES))
    required, optional = ([], []) if modules is None else ([MODULES], [PROMPTS])
    weights: list[str] = []
    tokenizers: list[tuple[tuple[str, ...], ...]] = []
    for kind, place in parts:
        files = FILES.get(kind, EncoderFiles(()))
        required += _within(place, files.required)
        optional += _within(place, files.optional)
        weights += _within(place, files.weights)
        tokenizers += [tuple(_within(place, names) for names in sets) for sets in files.tokenizers]
    return EncoderFiles(tuple(required), tuple(optional), tuple(weights), tuple(tokenizers))


def _within(place: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the paths of names in a subfolder; empty for the folder itself."""
    return tuple(f"{place}/{name}".lstrip("/") for name in names)


def encoder_files(folder: Path) -> list[str]:
    """Return the names of an encoder's files in its folder; none if the folder holds no encoder."""
    modules = folder / MODULES
    try:
        files = files_of(read_regular(modules) if modules.exists() else None)
        tokenizers = [needed_files(sets, lambda name: (folder / name).is_file()) for sets in files.tokenizers]
        if not all(tokenizers) or not all((folder / name).is_file() for name in files.required):
            return []
        places = dict(modules_of(folder))
        if STATIC not in places:
            named = places.get("Transformer")
            encoder_class(folder) if named is None else transformer_class(named)
        weights = [place + name for place in files.weights for name in weight_files(folder / place)]
    except (CheckpointError, OSError):
        return []
    required = [*files.required, *itertools.chain(*tokenizers)]
    return [*required, *weights, *(name for name in files.optional if (folder / name).is_file())]


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
        for kind, place in _parse_modules(read_regular(path), str(path)):
            yield kind, folder / place


def text_config(folder: Path) -> tuple[Path, dict[str, Any]]:
    """Return the path and the entries of the file with the limit of a text and its case; no entries without one.

    Raises:  CheckpointError for a malformed file
    """
    paths = [folder / name for name in TEXT_CONFIGS]
    path = next((path for path in paths if path.exists()), None)
    return (paths[0], {}) if path is None else (path, read_entries(path))


def transformer_settings(folder: Path) -> dict[str, Any]:
    """As `text_config`, the entries, for a model whose hidden states are pooled.

    Raises:  CheckpointError for a model that gives something else, or gets texts in another form
    """
    path, entries = text_config(folder)
    modalities = entries.get("modality_config")
    if isinstance(modalities, dict) and "message" in modalities:
        raise CheckpointError(
            f"{path}: modality_config has 'message', which formats texts as a conversation; "
            "tallow does not support that"
        )
    text = modalities.get("text") if isinstance(modalities, dict) else None
    output = text.get("method_output_name") if isinstance(text, dict) else None
    usual = {
        "transformer_task": (entries.get("transformer_task"), "feature-extraction"),
        "module_output_name": (entries.get("module_output_name"), "token_embeddings"),
        "modality_config.text.method_output_name": (output, "last_hidden_state"),
        "processing_kwargs": (entries.get("processing_kwargs") or None, None),
    }
    for name, (value, supported) in usual.items():
        if value not in (None, supported):
            raise CheckpointError(f"{path}: {name} is {value!r:.200}; tallow supports only {supported!r}")
    return entries


def prompts_of(folder: Path) -> dict[str, Any]:
    """Return the arguments `prompts` and `default_prompt` of a SentenceEncoder, by the folder's files.

    Raises:  CheckpointError for prompts that are no texts, or a default that is none of them
    """
    path = folder / PROMPTS
    entries = read_entries(path) if path.exists() else {}
    prompts, default = entries.get("prompts") or {}, entries.get("default_prompt_name")
    if isinstance(prompts, dict):
        prompts = {name: "" if text is None else text for name, text in prompts.items()}
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
        package, _, name = str(module.get("type")).rpartition(".")
        # A module of the repository's own code keeps its whole name, which nobody knows.
        yield name if package.startswith(PACKAGES) else f"{package}.{name}", place
