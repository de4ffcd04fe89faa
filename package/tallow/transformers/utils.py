"""transformers' helpers that programs import from `transformers.utils`."""

from __future__ import annotations

import re
from importlib.util import find_spec
from typing import Any

from tallow.errors import MissingModuleError
from tallow.transformers.modeling_outputs import ModelOutput

__all__ = ["ModelOutput"]


def is_torch_xla_available(check_is_tpu: bool = False, check_is_gpu: bool = False) -> bool:
    """Return False: there is no XLA here."""
    del check_is_tpu, check_is_gpu
    return False


def check_min_version(min_version: str) -> None:
    """Accept the least version of transformers that a program asks for: the names here are those of version 5."""
    del min_version


def require_version(requirement: str, hint: str | None = None) -> None:
    """Check that a package is installed.

    Args:    requirement: such as "datasets>=2.14.0" or "python>=3.11", whose version is not compared
    Raises:  MissingModuleError for a package that is not there
    """
    from importlib.metadata import distributions  # slow to import; training scripts alone call this

    name = re.split(r"[<>=!~ \[]", requirement, maxsplit=1)[0]
    is_module = name == "python" or find_spec(name.replace("-", "_")) is not None
    if not is_module and not any(distributions(name=name)):  # whose module may have another name
        raise MissingModuleError(f"the program asks for {requirement}, which is not installed", hint=hint)


def send_example_telemetry(example_name: str, *example_args: Any, framework: str = "pytorch") -> None:
    """Send nothing: tallow reports to nobody."""
    del example_name, example_args, framework


def is_torch_available() -> bool:
    """Return True: tallow has PyTorch's names."""
    return True


def is_tf_available() -> bool:
    """Return False: there is no TensorFlow here."""
    return False


def is_flax_available() -> bool:
    """Return False: there is no Flax here."""
    return False


def is_flash_attn_2_available() -> bool:
    """Return False: attention is tallow's."""
    return False


def is_sentencepiece_available() -> bool:
    """Return True: tallow reads SentencePiece's files itself."""
    return True


def is_tokenizers_available() -> bool:
    """Return True: tallow has tokenizers."""
    return True


def is_vision_available() -> bool:
    """Return whether Pillow is installed."""
    return find_spec("PIL") is not None


def is_datasets_available() -> bool:
    """Return whether `datasets` is installed."""
    return find_spec("datasets") is not None
