"""transformers' helpers that programs import from `transformers.utils`."""

from __future__ import annotations

from importlib.util import find_spec

from tallow.transformers.modeling_outputs import ModelOutput

__all__ = ["ModelOutput"]


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
