"""`tallow convert`: convert weights to another format or dtype.

IN   a file (safetensors, .pt, .npz, .gguf, .onnx, llama2c .bin), a model's folder, or owner/repository or
     owner/repository:file.gguf on the Hugging Face Hub
OUT  .safetensors, .pt or .pth, .npz: the tensors, with the names that `tallow inspect IN` shows
     .bin: a llama2c checkpoint; IN must be a Llama model
     .gguf: a model for tallow and llama.cpp, with its tokenizer and chat template, quantised by --quant. IN is a GGUF
     file, a llama2c checkpoint, or the folder of a model, or its .safetensors file beside the config.json: Llama,
     Mistral, Qwen2, Qwen3, Gemma to Gemma 3, Phi-3, Falcon, GPT-2, or an encoder of texts: BERT, RoBERTa, DistilBERT
     .onnx: a model that takes any batch, and texts of any length; IN is a model's folder, GGUF or llama2c file
     .py: the source of an ONNX model as PyTorch's code, and its weights in .safetensors beside it
     a folder: of an ONNX model such a model.py; else a model in Hugging Face format, with its config.json, its
     tokenizer and all parts listed in its modules.json; IN is such a folder, a GGUF file or a llama2c checkpoint. A
     name that ends in / is always a folder

The tokenizer of a llama2c checkpoint is a separate file: tallow convert model.bin folder --tokenizer tokenizer.bin

--adapter adds a LoRA adapter to the weights of a language model, and OUT is a folder.

Types for --quant, from the smallest: q2_k, q3_k_s, q3_k_m, q3_k_l, q4_0, q4_k_s, q4_k_m, q4_1, q5_0, q5_k_s, q5_k_m,
q5_1, q6_k, q8_0, f16, bf16, f32. q4_k_m is a good choice for most models.
"""

from __future__ import annotations

import argparse
import errno
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from tallow import dtypes
from tallow.cli import onnx_target
from tallow.cli.adapter import merge_adapter
from tallow.cli.gguf_target import llama2c_model, write_gguf
from tallow.cli.language_model import DTYPES
from tallow.cli.progress import Progress
from tallow.cli.terminal import one_line, report
from tallow.cli.writing import writing
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, TokenizerError
from tallow.hub import local_model
from tallow.io import files, llama2c, safetensors
from tallow.io.contents import contents
from tallow.io.gguf import GGUF, is_gguf
from tallow.io.model_folder import NAMES, copy_descriptions, has_weights, load_folder
from tallow.io.named import named_tensors
from tallow.io.regular import copy_regular
from tallow.io.whole_folder import atomic_folder
from tallow.models.auto import AutoModel
from tallow.models.config import CONFIG, DTYPE_NAMES, read_entries, write_entries
from tallow.models.decoders.llama import Llama
from tallow.models.decoders.llama_formats import hugging_face_form, llama2c_form
from tallow.models.encoders.sentence_folder import parts_of
from tallow.models.gguf import models as gguf_models
from tallow.models.gguf.recipes import recipe_of
from tallow.models.pretrained import PretrainedModel
from tallow.onnx.summary import is_onnx
from tallow.text import tokenizer, tokenizer_folder
from tallow.text.gguf_tokenizer import tokenizer_entries
from tallow.text.llama2c import Llama2cTokenizer
from tallow.training import vocabulary

LLAMA2C, GGUF_FILE, ONNX, PYTHON = ".bin", ".gguf", ".onnx", ".py"
TENSORS = (".safetensors", ".pt", ".pth", ".npz")
WEIGHTS = NAMES[0]  # file name in a folder


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `tallow convert`."""
    parser.add_argument("source", metavar="IN", help="a file, a model's folder, or owner/repository on the Hub")
    parser.add_argument("target", metavar="OUT", help="the file or folder to write")
    parser.add_argument("--dtype", choices=DTYPES, help="dtype of floating-point weights (default: unchanged)")
    parser.add_argument(
        "--quant", metavar="TYPE", help="if OUT is a .gguf file: its type, such as q4_k_m or q8_0 (default: unchanged)"
    )
    parser.add_argument(
        "--imatrix",
        metavar="TEXT",
        help="with --quant: a text file; errors are weighed by the inputs that the weights get on it",
    )
    parser.add_argument("--key", metavar="NAME", help="the entry of IN that contains the tensors, such as state_dict")
    parser.add_argument(
        "--tokenizer",
        metavar="FILE",
        help="if OUT is a folder or a .gguf file: a llama2.c tokenizer.bin, a tokenizer.json, or a folder with one "
        "(default: the tokenizer of IN)",
    )
    parser.add_argument(
        "--adapter",
        metavar="ADAPTER",
        help="if OUT is a folder: a LoRA adapter to add to the weights, a folder or owner/repository on the Hub",
    )
    parser.add_argument("--force", action="store_true", help="overwrite OUT if it exists")


def run(arguments: argparse.Namespace) -> int:
    """Convert IN to OUT.

    Raises:  TallowError, OSError
    """
    target = Path(arguments.target)
    extension = _extension(arguments.target)
    _check_options(arguments, extension)
    if target.exists() and not arguments.force:
        raise ArgumentError(f"{target} exists", hint="choose another name, or overwrite it with --force")
    dtype = DTYPES.get(arguments.dtype)
    source = _source(arguments.source)
    if extension == PYTHON or (extension == "" and is_onnx(source)):
        onnx_target.write_python(source, target, force=arguments.force)
        report(f"{target}: Python module")
        return 0
    if extension == ONNX:
        model = _file_model(source, dtype) if os.path.isfile(source) else AutoModel.from_pretrained(source, dtype)
        onnx_target.write_onnx(model, target)
        report(f"{target}: ONNX")
        return 0
    if extension == LLAMA2C:
        header, arrays = llama2c_form(_llama(source))
        with writing(target, header.file_bytes) as file:
            llama2c.write(header, arrays, file)
    elif extension == GGUF_FILE:
        report(
            write_gguf(
                source,
                target,
                arguments.quant,
                arguments.tokenizer,
                title=arguments.source,
                imatrix=arguments.imatrix,
            )
        )
        return 0
    elif extension in TENSORS:
        tensors = _cast_all(_tensors(source, arguments.key), dtype, source)
        with writing(target, _bytes(tensors.values())) as file:
            files.write(tensors, file, extension)
    else:
        _write_folder(source, target, dtype, arguments.tokenizer, arguments.adapter)
    report(f"{target}: {contents(target).format if extension else 'model folder'}")
    return 0


def _extension(target: str) -> str:
    """Return the extension of OUT, or "" for a folder. A folder's name may contain a dot: Qwen2.5-0.5B."""
    extension = Path(target).suffix
    if target.endswith(("/", os.sep)) or not extension[1:2].isalpha() or "-" in extension:
        return ""
    if extension.lower() not in (LLAMA2C, GGUF_FILE, ONNX, PYTHON, *TENSORS):
        known = ", ".join((*TENSORS, LLAMA2C, GGUF_FILE, ONNX, PYTHON))
        raise ArgumentError(f"{target}: unknown extension", hint=f"use {known}, or a folder: {target}/")
    return extension.lower()


def _source(name: str) -> str:
    """Return the path of IN, after downloading it if it is on the Hub."""
    if os.path.isfile(name):
        return name
    if not os.path.exists(name) and ":" not in name and name.lower().endswith((LLAMA2C, ONNX, *TENSORS)):
        # not a Hub id
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
    return str(local_model(name))


def _check_options(arguments: argparse.Namespace, extension: str) -> None:
    """Refuse options that would have no effect.

    Raises:  ArgumentError
    """
    if extension == PYTHON and not is_onnx(arguments.source):
        raise ArgumentError(f"{arguments.source} is no ONNX file", hint="choose another OUT than .py")
    if extension in (LLAMA2C, GGUF_FILE, ONNX) and is_onnx(arguments.source):
        raise ArgumentError(
            f"{arguments.source} is an ONNX file, which does not become a {extension} file",
            hint=f"write its weights ({', '.join(TENSORS)}), or its source ({PYTHON}, or a folder)",
        )
    if arguments.dtype is not None and (extension == PYTHON or (extension == "" and is_onnx(arguments.source))):
        raise ArgumentError("--dtype with the source of an ONNX model", hint="omit --dtype")
    if arguments.dtype is not None and extension == LLAMA2C:
        raise ArgumentError("--dtype with a .bin file: the llama2c format is float32", hint="omit --dtype")
    if arguments.quant is not None and extension != GGUF_FILE:
        raise ArgumentError("--quant applies only to .gguf files", hint="choose another OUT, or omit --quant")
    if arguments.quant is not None:
        recipe_of(arguments.quant)
    elif arguments.imatrix is not None:
        raise ArgumentError("--imatrix without --quant", hint="choose a type, such as --quant q4_k_m")
    if arguments.dtype is not None and extension == GGUF_FILE:
        raise ArgumentError("--dtype with a .gguf file", hint="choose its type with --quant, such as --quant bf16")
    if arguments.tokenizer is not None and extension not in ("", GGUF_FILE):
        raise ArgumentError(f"--tokenizer with a {extension} file, which contains only weights", hint="write a folder")
    if arguments.adapter is not None and extension:
        raise ArgumentError(f"--adapter with a {extension} file", hint="write a folder")
    if arguments.key is not None and (extension not in TENSORS or not os.path.isfile(arguments.source)):
        raise ArgumentError("--key applies only to files of tensors", hint="omit --key")


def _tensors(source: str, key: str | None) -> Mapping[str, Tensor]:
    if is_onnx(source):
        return onnx_target.tensors_of(source)
    if os.path.isfile(source):
        return named_tensors(files.load(source), source, key)
    return load_folder(source)


def _cast_all(tensors: Mapping[str, Tensor], dtype: dtypes.dtype | None, label: str) -> dict[str, Tensor]:
    """Return the tensors, floating-point ones as `dtype`. Tensors of a GGUF file are read one by one here."""
    result = {}
    with Progress(len(tensors), f"reading {label}", "tensors") as progress:
        for name in tensors:
            tensor = tensors[name]
            result[name] = tensor.to(dtype) if dtype is not None and tensor.is_floating_point() else tensor
            progress.advance(1)
    return result


def _llama(source: str) -> Llama:
    """Load the model of IN.  Raises: ArgumentError unless it is a Llama"""
    model = _file_model(source, None) if os.path.isfile(source) else AutoModel.from_pretrained(source)
    if not isinstance(model, Llama):
        raise ArgumentError(f"{source} is a {type(model).__name__}; the llama2c format supports only Llama")
    return model


def _file_model(source: str, dtype: dtypes.dtype | None) -> PretrainedModel:
    """Load the model of a file.  Raises: ArgumentError for a file of weights alone"""
    if is_gguf(source):
        with Progress(len(GGUF(source)), f"reading {source}", "tensors") as progress:
            model: PretrainedModel = gguf_models.load(
                source, dtype or dtypes.float32, progress=lambda done, total: progress.advance_to(done)
            )
            return model
    return llama2c_model(source, dtype)


def _write_folder(
    source: str, target: Path, dtype: dtypes.dtype | None, tokenizer_path: str | None, adapter: str | None
) -> None:
    with atomic_folder(target) as folder:
        if os.path.isfile(source):
            _write_file_model(source, folder, dtype, adapter, has_tokenizer=tokenizer_path is not None)
        elif adapter is not None:
            _write_merged(Path(source), folder, dtype, adapter)
        else:
            _copy_model(Path(source), folder, dtype)
        if tokenizer_path is not None:
            _write_tokenizer(tokenizer_path, folder)
    if not (target / tokenizer_folder.FILE).exists() and os.path.isfile(source):
        report(f"{target} has no tokenizer; add one with --tokenizer FILE --force")


def _write_file_model(
    source: str, folder: Path, dtype: dtypes.dtype | None, adapter: str | None, *, has_tokenizer: bool
) -> None:
    """Write the model of a file, with an adapter; also a GGUF file's tokenizer, unless `has_tokenizer`."""
    model = _file_model(source, dtype)
    merge_adapter(model, adapter)
    entries, state = hugging_face_form(model)
    write_entries(entries, folder / CONFIG)
    _write_weights(state, folder)
    if is_gguf(source) and not has_tokenizer:
        try:
            tokenizer.write_tokenizer(*tokenizer_entries(GGUF(source).metadata, source), folder)
        except TokenizerError as error:  # the weights are useful without it
            report(one_line(error))


def _write_merged(source: Path, folder: Path, dtype: dtypes.dtype | None, adapter: str) -> None:
    """Write the model of a folder with an adapter."""
    model = AutoModel.from_pretrained(source, dtype)
    merge_adapter(model, adapter)
    _copy_descriptions(source, folder, dtype)
    if not getattr(model.config, "tie_word_embeddings", True):  # as the weights are, whatever the config said
        write_entries(read_entries(folder / CONFIG) | {"tie_word_embeddings": False}, folder / CONFIG)
    _write_weights({name: tensor.detach() for name, tensor in model.state_dict().items()}, folder)


def _copy_model(source: Path, folder: Path, dtype: dtypes.dtype | None) -> None:
    """Copy a model's folder, with its weights as `dtype`."""
    _copy_descriptions(source, folder, dtype)
    parts = parts_of(source)
    if has_weights(source) or not any(map(has_weights, parts)):
        _write_weights(_cast_all(load_folder(source), dtype, str(source)), folder)
    for part, is_read in parts.items():
        copy = folder / part.name
        copy.mkdir()
        if is_read and has_weights(part):
            _copy_descriptions(part, copy, dtype)
            _write_weights(_cast_all(load_folder(part), dtype, str(part)), copy)
        else:
            _copy_all(part, copy)


def _copy_descriptions(source: Path, target: Path, dtype: dtypes.dtype | None) -> None:
    """Copy the files next to the weights. transformers loads weights as config.json says, so `dtype` goes there."""
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
            copy_regular(os.path.join(folder, name), copy / name)


def _write_weights(state: Mapping[str, Tensor], folder: Path) -> None:
    with writing(folder / WEIGHTS, _bytes(state.values())) as file:
        file.writelines(safetensors.encode(state, {"format": "pt"}))


def _write_tokenizer(path: str, folder: Path) -> None:
    """Write a tokenizer file to a model's folder.

    Raises:  TokenizerError if the tokenizer is malformed or does not match the model
    """
    size = read_entries(folder / CONFIG).get("vocab_size")
    if os.path.isdir(path) or path.endswith(".json"):
        copy = vocabulary.copy(Path(path), folder)
        if isinstance(size, int) and copy.size > size:
            raise TokenizerError(
                f"{path} has {copy.size} tokens, but the model has vocab_size={size}",
                hint="use the tokenizer that the model was trained with",
            )
        return
    entries, config = Llama2cTokenizer.load(path, vocab_size=size).hugging_face_form()
    tokenizer.write_tokenizer(entries, config, folder)


def _bytes(tensors: Iterable[Tensor]) -> int:
    return sum(tensor.numel() * tensor.dtype.itemsize for tensor in tensors)
