"""`tallow convert`: write weights in another format, or another dtype.

IN   a file that tallow reads (safetensors, .pt, .npz, .gguf, llama2c's .bin), a model's folder, or owner/repository or
     owner/repository:file.gguf of the Hub
OUT  .safetensors, .pt or .pth, .npz: the tensors under their names
     .bin: a llama2c checkpoint, of a Llama
     a folder: Hugging Face's config.json and model.safetensors, of a model
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from tallow import dtypes
from tallow.cli.language_model import DTYPES
from tallow.errors import ArgumentError
from tallow.hub import local_model
from tallow.io import safetensors
from tallow.io.contents import contents
from tallow.io.files import load, save
from tallow.io.gguf import is_gguf
from tallow.io.model_folder import copy_descriptions, load_folder
from tallow.io.named import named_tensors
from tallow.models import gguf_llama
from tallow.models.auto import AutoModel
from tallow.models.llama import Llama
from tallow.models.llama_formats import save_hugging_face, save_llama2c
from tallow.tensor import Tensor

TENSORS = (".safetensors", ".pt", ".pth", ".npz")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="IN", help="a file, a model's folder, or owner/repository of the Hub")
    parser.add_argument("target", metavar="OUT", help="the file or folder to write")
    parser.add_argument("--dtype", choices=DTYPES, help="for the weights that are floats (default: as they are)")
    parser.add_argument("--key", metavar="NAME", help="the entry of IN that holds the tensors, such as state_dict")
    parser.add_argument("--force", action="store_true", help="replace OUT where it exists")


def run(arguments: argparse.Namespace) -> int:
    """Raises: TallowError, OSError"""
    target = Path(arguments.target)
    if target.exists() and not arguments.force:
        raise ArgumentError(f"{target} exists", mend="choose another name, or replace it with --force")
    if target.suffix not in ("", ".bin", *TENSORS):
        raise ArgumentError(f"{target}: no format of this extension", mend=f"{', '.join(TENSORS)}, .bin, or a folder")
    dtype = DTYPES.get(arguments.dtype)
    source = arguments.source if os.path.isfile(arguments.source) else str(local_model(arguments.source))
    if target.suffix == ".bin":
        save_llama2c(_llama(source), target)
    elif target.suffix in TENSORS:
        tensors = {name: _cast(tensor, dtype) for name, tensor in _tensors(source, arguments.key).items()}
        save(tensors, target)
    else:
        _write_folder(source, target, dtype)
    print(f"{target}: {contents(target).format}", file=sys.stderr)
    return 0


def _tensors(source: str, key: str | None) -> Mapping[str, Tensor]:
    if os.path.isfile(source):
        return named_tensors(load(source), source, key)
    return load_folder(source)


def _cast(tensor: Tensor, dtype: dtypes.dtype | None) -> Tensor:
    return tensor.to(dtype) if dtype is not None and tensor.is_floating_point() else tensor


def _llama(source: str, dtype: dtypes.dtype | None = None) -> Llama:
    if not os.path.isfile(source):
        model = AutoModel.from_pretrained(source)
        if not isinstance(model, Llama):
            raise ArgumentError(f"{source} is of {type(model).__name__}; llama2c's format holds a Llama")
        return model
    return gguf_llama.load(source, dtype) if is_gguf(source) else Llama.from_llama2c(source, dtype)


def _write_folder(source: str, target: Path, dtype: dtypes.dtype | None) -> None:
    if os.path.isfile(source):
        save_hugging_face(_llama(source, dtype), target)
        return
    folder = Path(source)
    state = {name: _cast(tensor, dtype) for name, tensor in load_folder(folder).items()}
    target.mkdir(parents=True, exist_ok=True)
    copy_descriptions(folder, target)
    safetensors.save(state, target / "model.safetensors", {"format": "pt"})
