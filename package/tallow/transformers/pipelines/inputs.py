"""Pictures and sounds as pipelines take them: paths, addresses, `data:` addresses, and objects of other libraries."""

from __future__ import annotations

import sys
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import numpy as np
import numpy.typing as npt

import tallow as tl
from tallow.audio.sound import Sound, resample
from tallow.errors import ArgumentError, ArgumentTypeError, AudioError, HubError
from tallow.hub import in_browser
from tallow.io.images import decode_image, read_image

Samples = npt.NDArray[np.float32]
MAX_BYTES = 256 * 2**20  # of a file behind an address


def picture_of(value: Any, timeout: float | None = None) -> Any:
    """Return a picture in RGB: of a path, an address, the base64 of a file, or a picture of Pillow; arrays as they are.

    Args:    timeout: seconds to wait for an address
    Raises:  ImageError, OSError; HubError for an address; ArgumentTypeError for anything else
    """
    if isinstance(value, np.ndarray | tl.Tensor):
        return value.numpy() if isinstance(value, tl.Tensor) else value
    if isinstance(value, Path):
        return read_image(value)
    if not isinstance(value, str):
        if hasattr(value, "convert"):
            return value.convert("RGB")
        raise ArgumentTypeError(f"a picture is a path, an address or a picture of Pillow, not {type(value).__name__}")
    if is_address(value):
        return decode_image(fetched(value, timeout), value)
    if Path(value).is_file():
        return read_image(value)
    try:
        return decode_image(b64decode(value.rpartition("base64,")[2], validate=True))
    except Base64Error:
        raise ArgumentError(
            f"{value!r:.80} is no file, no address and no base64", hint="pass the path of a picture"
        ) from None


def samples_of(value: Any, sample_rate_hz: int) -> tuple[Samples, dict[str, Any]]:
    """Return the samples of a sound, and the other entries of a dict.

    Args:
        value: a path, an address, the bytes of a file, an array of samples at the right rate, or a dict of `array` (or
            `raw`) and `sampling_rate`.
        sample_rate_hz: the rate that the model needs.

    Shapes:  samples (N,); arrays of two channels (2, N) are mixed
    Raises:  AudioError, OSError, MissingPackageError; HubError for an address; ArgumentError for a dict without these
             entries, and for an array of other shapes; ArgumentTypeError for anything else
    """
    if isinstance(value, str) and is_address(value):
        value = fetched(value)
    if isinstance(value, str | Path | bytes):
        return _finite(Sound(value, sample_rate_hz=sample_rate_hz).read()), {}
    if not isinstance(value, Mapping):
        return _finite(_mono(value)), {}
    others = {name: each for name, each in value.items() if name not in ("raw", "array", "sampling_rate", "path")}
    array = value.get("raw", value.get("array"))
    if array is None or "sampling_rate" not in value:
        raise ArgumentError(f"a sound has {sorted(value)}", hint='pass {"array": samples, "sampling_rate": 16000}')
    return resample(_finite(_mono(array)), int(value["sampling_rate"]), sample_rate_hz), others


def _finite(samples: Samples) -> Samples:
    """Return samples.  Raises: AudioError if some are no finite numbers"""
    if not np.isfinite(samples).all():
        raise AudioError("a sound with samples that are NaN or infinite", hint="repair the file, or replace them by 0")
    return samples


def _mono(value: Any) -> Samples:
    array = value.detach().cpu().numpy() if isinstance(value, tl.Tensor) or hasattr(value, "detach") else value
    if not isinstance(array, np.ndarray):
        raise ArgumentTypeError(f"a sound is a path, an array of samples or a dict, not {type(value).__name__}")
    if array.ndim == 1:
        return array
    if array.ndim != 2 or array.shape[0] > 2:
        raise ArgumentError(
            f"samples of shape {array.shape}; expected (samples,) or (channels, samples) of two channels",
            hint="transpose an array (samples, channels), or mix more channels to one",
        )
    return array.mean(axis=0)


def is_address(text: str) -> bool:
    """Return whether a text is an address of the web."""
    return text.startswith(("http://", "https://"))


def fetched(url: str, timeout: float | None = None) -> bytes:
    """Return the file behind an address.  Raises: HubError"""
    if sys.platform == "emscripten":
        answer = in_browser.request(url, None, None)
        if answer.status != 200:
            raise HubError(
                f"{url} answers {answer.status or 'nothing'}", "the site may not allow other pages to read it"
            )
        return answer.body
    try:
        with closing(urlopen(Request(url, headers={"User-Agent": "tallow"}), timeout=timeout)) as response:
            data: bytes = response.read(MAX_BYTES + 1)
    except OSError as error:
        raise HubError(f"{url}: {error}", "check the address") from error
    if len(data) > MAX_BYTES:
        raise HubError(f"{url} has more than {MAX_BYTES} bytes", "download it, and pass its path")
    return data
