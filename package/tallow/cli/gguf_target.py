"""The part of `tallow convert` that writes GGUF files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from tallow.cli.progress import Progress
from tallow.cli.terminal import one_line, report, size_text
from tallow.cli.writing import writing
from tallow.dtypes import Array
from tallow.errors import ArgumentError, TokenizerError
from tallow.io import llama2c, safetensors
from tallow.io.contents import contents
from tallow.io.gguf import GGUF, is_gguf
from tallow.io.gguf_layout import PLAIN
from tallow.io.gguf_write import bits_per_weight, size_of, write
from tallow.io.regular import regular_or_pipe
from tallow.io.source import open_source
from tallow.models.auto import AutoModel, model_class
from tallow.models.causal_lm import CausalLM
from tallow.models.config import CONFIG
from tallow.models.decoders.llama import Llama
from tallow.models.encoders.sentence_folder import modules_of
from tallow.models.encoders.sentence_parts import Pooling
from tallow.models.gguf.export import file_targets, model_targets
from tallow.models.gguf.importance import importance_of
from tallow.models.gguf.metadata import vocabulary_size
from tallow.models.gguf.names import POOLINGS
from tallow.models.pretrained import PretrainedModel
from tallow.text import tokenizer_folder
from tallow.text.gguf_tokenizer_export import gguf_entries
from tallow.text.llama2c import Llama2cTokenizer
from tallow.text.tokenizer import Tokenizer

NAME = "general.name"
TOKENIZER = "tokenizer."


def write_gguf(
    source: str, target: Path, quant: str | None, tokenizer_path: str | None, *, title: str, imatrix: str | None = None
) -> str:
    """Write the model at `source` to a GGUF file, and return a line that describes the file.

    Args:
        title: the name of the source as the user gave it.
        imatrix: the path of a text that weighs the errors.

    Raises:  TallowError, OSError
    """
    if os.path.isfile(source) and is_gguf(source):
        file = GGUF(source)
        importance = None
        if imatrix is not None:
            importance = _importance(AutoModel.from_pretrained(source), imatrix, tokenizer_path or source)
        metadata, targets = file_targets(file, quant, importance)
        if quant is not None and any(file.info(name).type not in PLAIN for name in file):
            report(
                f"{source} is quantised already, so the errors of both types add up; convert the original if you can"
            )
        if tokenizer_path is not None:
            metadata = {key: value for key, value in metadata.items() if not key.startswith(TOKENIZER)}
            metadata |= _tokenizer(Path(tokenizer_path), vocabulary_size(file))
    else:
        source, pooling = _transformer(source)
        model = _model(source)
        entries = _tokenizer_of(source, tokenizer_path, model)
        importance = None if imatrix is None else _importance(model, imatrix, tokenizer_path or _folder(source))
        metadata, targets = model_targets(model, quant, entries, importance)
        metadata[NAME] = _name(title)
        if pooling is not None:
            metadata[f"{metadata['general.architecture']}.pooling_type"] = pooling
        if not entries:
            report(f"{target} has no tokenizer; add one with --tokenizer FILE --force")
    with writing(target, size_of(targets)) as out:
        write(targets, metadata, out)
    kind = "" if quant is None else f" {quant.upper()}"
    return f"{target}: GGUF{kind}, {size_text(size_of(targets))}, {bits_per_weight(targets):.2f} bits per weight"


def _transformer(source: str) -> tuple[str, int | None]:
    """Return the folder of the transformer of a sentence-transformers folder, and the number of its pooling; for any
    other source the source and None.

    Raises:  ArgumentError for poolings and modules that GGUF has no names for
    """
    pooling = None
    for kind, folder in modules_of(Path(source)):
        if kind == "Transformer":
            source = str(folder)
        elif kind == "Pooling":
            modes = Pooling.from_json(folder / CONFIG).modes
            pooling = next((number for number, mode in POOLINGS.items() if (mode,) == modes), None)
            if pooling is None:
                raise ArgumentError(f"{folder}: GGUF has no number for the pooling {', '.join(modes)}")
        elif kind != "Normalize":  # a choice of those who use the vectors
            raise ArgumentError(f"{folder}: GGUF files hold no modules of kind {kind!r:.80}")
    return source, pooling


def _model(source: str) -> PretrainedModel:
    """Load the model of a folder, of a .safetensors file beside its config, or of a llama2c checkpoint."""
    if not os.path.isfile(source):
        model: PretrainedModel = AutoModel.from_pretrained(source)
        return model
    folder = Path(source).parent
    if source.endswith(".safetensors") and (folder / CONFIG).exists():
        kind = model_class(folder)
        return kind.assemble(kind.config_class.from_json(folder / CONFIG), safetensors.load(source), source=source)
    return llama2c_model(source)


def llama2c_model(source: str, dtype: Any = None) -> Llama:
    """Load the model of a llama2c checkpoint.  Raises: ArgumentError for a file of weights alone"""
    if not llama2c.is_checkpoint(open_source(source)[0]):
        raise ArgumentError(
            f"{source} is {contents(source).format}: weights without a model config",
            hint="pass the model's folder, a GGUF file or a llama2c checkpoint",
        )
    return Llama.from_llama2c(source, dtype)


def _tokenizer_of(source: str, path: str | None, model: PretrainedModel) -> dict[str, Any]:
    """Return the metadata of the tokenizer at `path`, or else of the source; empty if there is none."""
    size = model.config.vocab_size
    if path is not None:
        return _tokenizer(Path(path), size)
    folder = _folder(source)
    if (os.path.isfile(source) and not (folder / CONFIG).exists()) or not tokenizer_folder.has_tokenizer(folder):
        return {}
    try:
        return _tokenizer(folder, size)
    except TokenizerError as error:  # the weights are useful without it
        report(one_line(error))
        return {}


def _folder(source: str) -> Path:
    return Path(source).parent if os.path.isfile(source) else Path(source)


def _importance(model: PretrainedModel, text_path: str, tokenizer_path: str | Path) -> dict[str, Array]:
    """Return the importance of the model's columns on a text.  Raises: OSError, TokenizerError, ArgumentError"""
    if not isinstance(model, CausalLM):
        raise ArgumentError(f"--imatrix with a {type(model).__name__}, which is not a language model")
    try:
        with open(text_path, encoding="utf-8", opener=regular_or_pipe) as file:
            text = file.read()
    except UnicodeDecodeError as error:
        raise ArgumentError(f"{text_path} is not UTF-8 text: {error}") from error
    path = Path(tokenizer_path)
    if path.suffix == ".bin":
        ids = Llama2cTokenizer.load(path, vocab_size=model.config.vocab_size).encode(text)
    else:
        ids = Tokenizer.from_pretrained(path).encode(text)
    with Progress(len(ids), f"reading {text_path}", "tokens") as progress:
        return importance_of(model, ids, progress=lambda done, total: progress.advance_to(done))


def _tokenizer(path: Path, size: int) -> dict[str, Any]:
    if path.is_file() and path.suffix != ".json":
        return Llama2cTokenizer.load(path, vocab_size=size).gguf_form()
    files = tokenizer_folder.read_folder(path)
    return gguf_entries(files.entries, files.config, size, str(files.path))


def _name(title: str) -> str:
    """Return the name of a model: that of its folder or file."""
    name = Path(title.rstrip("/")).name
    return Path(name).stem if os.path.isfile(title) else name
