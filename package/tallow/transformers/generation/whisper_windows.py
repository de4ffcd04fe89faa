"""The windows in which Whisper's `generate` reads a sound: what it writes for them, and the segments of that.

Letters: A sounds, M mel bins, T frames, N tokens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tallow.audio.mel import FRAMES_PER_SECOND
from tallow.core.tensor import Tensor, wrap
from tallow.devices import to_host
from tallow.models.whisper.segments import FRAMES_PER_TIMESTAMP, cut_places
from tallow.text.whisper import SECONDS_PER_TIMESTAMP
from tallow.transformers.generation.configuration_utils import GenerationConfig
from tallow.transformers.generation.logits_process import ids_of
from tallow.transformers.generation.whisper_quality import Quality


@dataclass(frozen=True, kw_only=True)
class Sound:
    """A sound that windows read one after another.

    Attributes:
        features: its spectrogram (1, M, T).
        start: the tokens that begin each text.
        before: the prompt's tokens.
        quality: the options about texts that are not good enough.
        has_times: the times of tokens are asked for.
        frames: how many frames are sound; None if that is not known.
    """

    features: Tensor
    start: list[int]
    before: list[int]
    quality: Quality
    has_times: bool
    frames: int | None


class Text(NamedTuple):
    """The text that the model wrote for a window.

    Attributes:
        written: the result of `generate`.
        tokens: of the text, with the one that ends it.
        is_silent: the window holds no speech.
        audio: what the decoder read.
    """

    written: Any
    tokens: list[int]
    temperature: float
    is_silent: bool
    audio: Tensor


def sounds_of(
    features: Tensor,
    mask: Tensor | None,
    starts: Sequence[list[int]],
    before: list[int],
    quality: Quality,
    has_times: bool,
) -> list[Sound]:
    """Return the sounds of a batch of spectrograms (A, M, T).  Args: the others are those of `Sound`, of each or all"""
    lengths = frames_of(features, mask)
    heard = [None] * len(lengths) if mask is None else to_host(mask.array).sum(1).tolist()
    return [
        Sound(
            features=features[i : i + 1, :, :length],
            start=start,
            before=before,
            quality=quality,
            has_times=has_times,
            frames=heard[i],
        )
        for i, (start, length) in enumerate(zip(starts, lengths, strict=True))
    ]


def result_of(segments: list[list[dict[str, Any]]], pad: int, has_times: bool, has_segments: bool) -> dict[str, Any]:
    """Return the ids of sounds, and what was asked for besides."""
    rows = [[token for segment in each for token in segment["tokens"].tolist()] for each in segments]
    result: dict[str, Any] = {"sequences": rows_of(rows, pad)}
    if has_times:
        result["token_timestamps"] = times_of(segments)
    return result | ({"segments": segments} if has_segments else {})


def frames_of(features: Tensor, mask: Tensor | None) -> list[int]:
    """Return how many frames of each sound are read."""
    if mask is None or features.shape[0] == 1:
        return [features.shape[-1]] * features.shape[0]
    return [int(length) for length in to_host(mask.array).sum(1)]


def first_time(config: GenerationConfig, vocab_size: int) -> int:
    """Return the token of the time 0; the size of the vocabulary for a model without times."""
    last = vars(config).get("no_timestamps_token_id")
    return vocab_size if last is None else int(last) + 1


def without_end(tokens: list[int], config: GenerationConfig) -> list[int]:
    """Return tokens without those that end a text, and the padding after it."""
    ends = {*ids_of([] if config.eos_token_id is None else config.eos_token_id), config.pad_token_id}
    while tokens and tokens[-1] in ends:
        tokens = tokens[:-1]
    return tokens


def cut(tokens: list[int], begin: int, size: int) -> tuple[list[tuple[float, float, list[int]]], int]:
    """Return the segments of a window, each with its start and end in seconds, and how many frames were read."""
    places, has_ended = cut_places(tokens, begin)
    if not places:
        times = [token - begin for token in tokens if token >= begin]
        seconds = times[-1] * SECONDS_PER_TIMESTAMP if times and times[-1] else size / FRAMES_PER_SECOND
        return [(0.0, seconds, tokens)], size
    last = places[-1]
    ends = [*places[:-1], last if has_ended else last + 1]
    found = []
    for first, end, cut in zip([0, *places], ends, places, strict=False):
        part = tokens[first:end]
        found.append(
            ((part[0] - begin) * SECONDS_PER_TIMESTAMP, (tokens[cut - 1] - begin) * SECONDS_PER_TIMESTAMP, part)
        )
    return found, size if has_ended else (tokens[last - 1] - begin) * FRAMES_PER_TIMESTAMP


def seconds_at(seek: int, seconds: float) -> Tensor:
    """Return a time of a window that begins at frame `seek`."""
    return wrap(np.array(seek / FRAMES_PER_SECOND + seconds, np.float64))


def set_temperature(config: GenerationConfig, temperature: float) -> None:
    """Draw at a temperature; 0 takes the likeliest tokens."""
    config.do_sample, config.temperature = temperature > 0, float(temperature) if temperature else 1.0
    if config.do_sample:
        config.num_beams = 1


def first_row(written: Any, times: Any) -> Any:
    """Return the first row of what `generate` returned: of a tensor, or of each entry of a dictionary."""
    if isinstance(written, Tensor) and times is None:
        return written[0]
    entries = dict(written.items()) if not isinstance(written, Tensor) else {"sequences": written}
    rows: dict[str, Any] = {}
    for name, value in entries.items():
        if isinstance(value, Tensor):
            rows[name] = value[0]
        elif name in ("scores", "logits"):
            rows[name] = [each[0] for each in value]
    return rows | ({} if times is None else {"token_timestamps": wrap(times)})


def times_of(segments: Sequence[Sequence[Mapping[str, Any]]]) -> Tensor:
    """Return the times of tokens (A, N), each from the start of its window; after the last one, that of the last."""
    rows = []
    for each in segments:
        parts = [to_host(s["result"]["token_timestamps"].array)[slice(*s["idxs"])] for s in each]
        rows.append(np.concatenate([np.zeros(0, np.float32), *parts]))
    most = max(map(len, rows))
    return wrap(np.stack([np.pad(row, (0, most - len(row)), mode="edge" if len(row) else "constant") for row in rows]))


def rows_of(rows: Sequence[Sequence[int]], fill: int) -> Tensor:
    """Return rows of ids (A, N), filled on the right."""
    filled: npt.NDArray[np.int64] = np.full((len(rows), max(map(len, rows))), fill, np.int64)
    for row, tokens in zip(filled, rows, strict=True):
        row[: len(tokens)] = tokens
    return wrap(filled)
