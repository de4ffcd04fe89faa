"""`tallow convert`: write weights in another format, or another dtype.

IN   a file that tallow reads (safetensors, .pt, .npz, .gguf, llama2c's .bin), a model's folder, or owner/repository or
     owner/repository:file.gguf of the Hub
OUT  .safetensors, .pt or .pth, .npz: the tensors under the names that `tallow inspect IN` shows
     .bin: a llama2c checkpoint, of a Llama
     a folder: a model as Hugging Face's libraries read it, with its config.json, its tokenizer and all parts that its
     modules.json names; IN is such a folder, a GGUF file or a llama2c checkpoint. Any name that ends in / is a folder

The tokenizer of a llama2c checkpoint is a file of its own: tallow convert model.bin folder --tokenizer tokenizer.bin
"""

from __future__ import annotations

import argparse
import errno
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

from tallow import dtypes
from tallow.cli.language_model import DTYPES
from tallow.cli.progress import Progress
from tallow.cli.terminal import one_line, report
from tallow.errors import ArgumentError, TokenizerError
from tallow.hub import local_model
from tallow.io import files, llama2c, safetensors
from tallow.io.atomic import atomic_folder, atomic_write
from tallow.io.contents import contents
from tallow.io.gguf import GGUF, is_gguf
from tallow.io.model_folder import INDEX, NAMES, copy_descriptions, load_folder
from tallow.io.named import named_tensors
from tallow.io.source import open_source
from tallow.models import gguf_llama
from tallow.models.auto import AutoModel
from tallow.models.config import CONFIG, DTYPE_NAMES, read_entries, write_entries
from tallow.models.llama import Llama
from tallow.models.llama_formats import hugging_face_form, llama2c_form
from tallow.models.sentence_folder import parts_of
from tallow.tensor import Tensor
from tallow.text import tokenizer
from tallow.text.gguf_tokenizer import tokenizer_entries
from tallow.text.llama2c import Llama2cTokenizer
from tallow.training import vocabulary

LLAMA2C = ".bin"
TENSORS = (".safetensors", ".pt", ".pth", ".npz")
WEIGHTS = NAMES[0]  # of a folder
CHUNK = 16 << 20  # bytes that are written before the bar moves


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="IN", help="a file, a model's folder, or owner/repository of the Hub")
    parser.add_argument("target", metavar="OUT", help="the file or folder to write")
    parser.add_argument("--dtype", choices=DTYPES, help="for the weights that are floats (default: as they are)")
    parser.add_argument("--key", metavar="NAME", help="the entry of IN that holds the tensors, such as state_dict")
    parser.add_argument(
        "--tokenizer",
        metavar="FILE",
        help="for OUT, a folder: a tokenizer.bin of llama2.c's format, a tokenizer.json, or a folder with one "
        "(default: what IN brings)",
    )
    parser.add_argument("--force", action="store_true", help="replace OUT where it exists")


def run(arguments: argparse.Namespace) -> int:
    """Raises: TallowError, OSError"""
    target = Path(arguments.target)
    form = _form(arguments.target)
    _check_options(arguments, form)
    if target.exists() and not arguments.force:
        raise ArgumentError(f"{target} exists", mend="choose another name, or replace it with --force")
    dtype = DTYPES.get(arguments.dtype)
    source = _source(arguments.source)
    if form == LLAMA2C:
        header, arrays = llama2c_form(_llama(source))
        with _writing(target, header.file_bytes) as file:
            llama2c.write(header, arrays, file)
    elif form in TENSORS:
        tensors = _cast_all(_tensors(source, arguments.key), dtype, source)
        with _writing(target, _bytes(tensors.values())) as file:
            files.write(tensors, file, form)
    else:
        _write_folder(source, target, dtype, arguments.tokenizer)
    report(f"{target}: {contents(target).format if form else 'folder of a model'}")
    return 0


def _form(target: str) -> str:
    """The extension that says what OUT is; "" for a folder. A folder's name may have a dot too: Qwen2.5-0.5B."""
    extension = Path(target).suffix
    if target.endswith(("/", os.sep)) or not extension[1:2].isalpha() or "-" in extension:
        return ""
    if extension.lower() not in (LLAMA2C, *TENSORS):
        raise ArgumentError(
            f"{target}: no format of this extension", mend=f"{', '.join(TENSORS)}, {LLAMA2C}, or a folder: {target}/"
        )
    return extension.lower()


def _source(name: str) -> str:
    """The file or the folder that IN names, or that it is fetched to."""
    if os.path.isfile(name):
        return name
    if not os.path.exists(name) and name.lower().endswith((LLAMA2C, *TENSORS)):  # the Hub would be asked for it
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
    return str(local_model(name))


def _check_options(arguments: argparse.Namespace, form: str) -> None:
    """Raises:  ArgumentError for an option that would have no effect"""
    if arguments.dtype is not None and form == LLAMA2C:
        raise ArgumentError("--dtype with a .bin: llama2c's format is float32", mend="leave out --dtype")
    if arguments.tokenizer is not None and form:
        raise ArgumentError(f"--tokenizer with a {form}, which holds weights alone", mend="write a folder")
    if arguments.key is not None and (form not in TENSORS or not os.path.isfile(arguments.source)):
        raise ArgumentError("--key is for files of tensors", mend="leave out --key")


def _tensors(source: str, key: str | None) -> Mapping[str, Tensor]:
    if os.path.isfile(source):
        return named_tensors(files.load(source), source, key)
    return load_folder(source)


def _cast_all(tensors: Mapping[str, Tensor], dtype: dtypes.dtype | None, label: str) -> dict[str, Tensor]:
    """The tensors, with those of floats in `dtype`. A GGUF file makes each only now."""
    found = {}
    with Progress(len(tensors), f"reading {label}", "tensors") as progress:
        for name in tensors:
            tensor = tensors[name]
            found[name] = tensor.to(dtype) if dtype is not None and tensor.is_floating_point() else tensor
            progress.advance(1)
    return found


def _llama(source: str, dtype: dtypes.dtype | None = None) -> Llama:
    if not os.path.isfile(source):
        model = AutoModel.from_pretrained(source)
        if not isinstance(model, Llama):
            raise ArgumentError(f"{source} is of {type(model).__name__}; llama2c's format holds a Llama")
        return model
    if is_gguf(source):
        with Progress(len(GGUF(source)), f"reading {source}", "tensors") as progress:
            return gguf_llama.load(source, dtype, progress=lambda done, total: progress.advance_to(done))
    if not llama2c.is_checkpoint(open_source(source)[0]):
        raise ArgumentError(
            f"{source} is {contents(source).format}: weights, and no config of a model",
            mend="convert the model's folder, a GGUF file or a llama2c checkpoint",
        )
    return Llama.from_llama2c(source, dtype)


def _write_folder(source: str, target: Path, dtype: dtypes.dtype | None, tokenizer_path: str | None) -> None:
    with atomic_folder(target) as folder:
        if os.path.isfile(source):
            _write_llama(source, folder, dtype, has_tokenizer=tokenizer_path is not None)
            places = [folder]
        else:
            places = list(_copy_model(Path(source), folder, dtype))
        if tokenizer_path is not None:
            _write_tokenizer(tokenizer_path, folder)
    for place in places:  # an index that is there already would go before the weights
        (target / place.relative_to(folder) / (WEIGHTS + INDEX)).unlink(missing_ok=True)
    if not (target / tokenizer.FILE).exists() and os.path.isfile(source):
        report(f"{target} has no tokenizer; to add one: --tokenizer FILE --force")


def _write_llama(source: str, folder: Path, dtype: dtypes.dtype | None, *, has_tokenizer: bool) -> None:
    """A file's model; and a GGUF file's tokenizer, unless there is one already."""
    entries, state = hugging_face_form(_llama(source, dtype))
    write_entries(entries, folder / CONFIG)
    _write_weights(state, folder)
    if is_gguf(source) and not has_tokenizer:
        try:
            tokenizer.write_tokenizer(*tokenizer_entries(GGUF(source).metadata, source), folder)
        except TokenizerError as error:  # the weights are of use without it
            report(one_line(error))


def _copy_model(source: Path, folder: Path, dtype: dtypes.dtype | None) -> Iterator[Path]:
    """Copy a model's folder, with its weights in `dtype`; where weights were written."""
    _copy_descriptions(source, folder, dtype)
    parts = parts_of(source)
    if _has_weights(source) or not any(map(_has_weights, parts)):
        _write_weights(_cast_all(load_folder(source), dtype, str(source)), folder)
        yield folder
    for part, is_read in parts.items():
        copy = folder / part.name
        copy.mkdir()
        if is_read and _has_weights(part):
            _copy_descriptions(part, copy, dtype)
            _write_weights(_cast_all(load_folder(part), dtype, str(part)), copy)
            yield copy
        else:
            _copy_all(part, copy)


def _has_weights(folder: Path) -> bool:
    return any((folder / f"{name}{index}").exists() for name in NAMES for index in ("", INDEX))


def _copy_descriptions(source: Path, target: Path, dtype: dtypes.dtype | None) -> None:
    """Copy what lies beside the weights, which are in `dtype` then; transformers loads them as the config says."""
    copy_descriptions(source, target)
    config = target / CONFIG
    if dtype is not None and config.exists():
        entries = read_entries(config)
        write_entries({name: dtype.name if name in DTYPE_NAMES else entries[name] for name in entries}, config)


def _copy_all(source: Path, target: Path) -> None:
    for folder, _, names in os.walk(source):
        copy = target / os.path.relpath(folder, source)
        copy.mkdir(exist_ok=True)
        for name in names:
            shutil.copyfile(os.path.join(folder, name), copy / name)


def _write_weights(state: Mapping[str, Tensor], folder: Path) -> None:
    with _writing(folder / WEIGHTS, _bytes(state.values())) as file:
        file.writelines(safetensors.encode(state, {"format": "pt"}))


def _write_tokenizer(path: str, folder: Path) -> None:
    """Raises:  TokenizerError for a tokenizer that is malformed, or not the model's"""
    size = read_entries(folder / CONFIG).get("vocab_size")
    if os.path.isdir(path) or path.endswith(".json"):
        copied = vocabulary.copy(Path(path), folder)
        if isinstance(size, int) and copied.size > size:
            raise TokenizerError(
                f"{path} has {copied.size} tokens, but the model has vocab_size={size}",
                mend="take the tokenizer that belongs to the model",
            )
        return
    entries, config = Llama2cTokenizer.load(path, vocab_size=size).hugging_face_form()
    tokenizer.write_tokenizer(entries, config, folder)


def _bytes(tensors: Iterable[Tensor]) -> int:
    return sum(tensor.numel() * tensor.dtype.itemsize for tensor in tensors)


@contextmanager
def _writing(target: Path, total: int) -> Iterator[BinaryIO]:
    """A file that takes the place of `target` when the block ends well, and a bar."""
    with atomic_write(target) as file, Progress(total, f"writing {target.name}", "B") as progress:
        yield cast(BinaryIO, _Counted(file, progress))


class _Counted:
    """A binary file that says how much is written."""

    def __init__(self, file: BinaryIO, progress: Progress) -> None:
        self._file, self._progress = file, progress

    def write(self, data: Any) -> int:
        view = memoryview(data)
        view = view.cast("B") if view.nbytes else view
        for start in range(0, view.nbytes, CHUNK):
            self._progress.advance(self._file.write(view[start : start + CHUNK]))
        return view.nbytes

    def writelines(self, parts: Iterable[Any]) -> None:
        for part in parts:
            self.write(part)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)
