"""Watermarks under transformers' names; `tallow.generation.watermark` computes them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Self

from tallow.errors import ArgumentError
from tallow.generation.processors import Logits
from tallow.generation.watermark import GreenList, Tournament, TournamentState
from tallow.transformers.generation.logits_process import RowProcessor


class BaseWatermarkingConfig:
    """The base of the configs of watermarks, whose attributes are their entries."""

    @classmethod
    def from_dict(cls, config_dict: dict[str, Any], **kwargs: Any) -> Self:
        """Return a config with entries of a dictionary, and further ones."""
        config = cls(**config_dict)
        config.update(**kwargs)
        return config

    def update(self, **kwargs: Any) -> None:
        """Set entries; arguments that are none are left out."""
        vars(self).update({name: value for name, value in kwargs.items() if name in vars(self)})

    def validate(self) -> None:
        """Raise ArgumentError for entries that are invalid."""
        raise NotImplementedError

    def construct_processor(self, vocab_size: int, device: Any = "cpu") -> RowProcessor:
        """Return the processor that marks texts."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """Return the entries."""
        return dict(vars(self))

    def to_json_string(self) -> str:
        """Return the entries as JSON."""
        return json.dumps(self.to_dict(), indent=2) + "\n"

    def to_json_file(self, json_file_path: str | PathLike[str]) -> None:
        """Write the entries to a file."""
        Path(json_file_path).write_text(json.dumps(self.to_dict(), indent=2, sort_keys=True) + "\n", encoding="utf-8")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other) == vars(self)

    __hash__ = None  # type: ignore[assignment]  # entries can be set

    def __repr__(self) -> str:
        return f"{type(self).__name__} {self.to_json_string()}"


class WatermarkingConfig(BaseWatermarkingConfig):
    """A watermark of green tokens; see `tallow.generation.watermark.GreenList`."""

    def __init__(
        self,
        greenlist_ratio: float = 0.25,
        bias: float = 2.0,
        hashing_key: int = 15485863,
        seeding_scheme: str = "lefthash",
        context_width: int = 1,
    ) -> None:
        self.greenlist_ratio = greenlist_ratio
        self.bias = bias
        self.hashing_key = hashing_key
        self.seeding_scheme = seeding_scheme
        self.context_width = context_width

    def validate(self) -> None:
        """Raise ArgumentError for entries that are invalid."""
        is_valid = 0 <= self.greenlist_ratio <= 1 and self.context_width >= 1
        if not is_valid or self.seeding_scheme not in ("lefthash", "selfhash"):
            hint = (
                'greenlist_ratio is between 0 and 1, context_width 1 or more, seeding_scheme "lefthash" or "selfhash"'
            )
            raise ArgumentError(f"watermarking_config: {self.to_dict()}", hint=hint)

    def construct_processor(self, vocab_size: int, device: Any = "cpu") -> WatermarkLogitsProcessor:
        """Return the processor that marks texts."""
        return WatermarkLogitsProcessor(
            vocab_size,
            device,
            self.greenlist_ratio,
            self.bias,
            self.hashing_key,
            self.seeding_scheme,
            self.context_width,
        )


class SynthIDTextWatermarkingConfig(BaseWatermarkingConfig):
    """The watermark SynthID-Text; see `tallow.generation.watermark.Tournament`."""

    def __init__(
        self,
        ngram_len: int,
        keys: list[int],
        context_history_size: int = 1024,
        sampling_table_seed: int = 0,
        sampling_table_size: int = 2**16,
        skip_first_ngram_calls: bool = False,
        debug_mode: bool = False,
    ) -> None:
        self.ngram_len = ngram_len
        self.keys = keys
        self.sampling_table_size = sampling_table_size
        self.sampling_table_seed = sampling_table_seed
        self.context_history_size = context_history_size
        self.skip_first_ngram_calls = skip_first_ngram_calls
        self.debug_mode = debug_mode

    def validate(self) -> None:
        """Raise ArgumentError for entries that are invalid."""
        if self.sampling_table_size > 2**24:
            raise ArgumentError(f"sampling_table_size={self.sampling_table_size}", hint="pass at most 2**24")

    def construct_processor(self, vocab_size: int, device: Any = "cpu") -> SynthIDTextWatermarkLogitsProcessor:
        """Return the processor that marks texts."""
        return SynthIDTextWatermarkLogitsProcessor(
            self.ngram_len,
            self.keys,
            self.sampling_table_size,
            self.sampling_table_seed,
            self.context_history_size,
            device,
            self.skip_first_ngram_calls,
            self.debug_mode,
        )


def watermarking_config(entries: dict[str, Any]) -> BaseWatermarkingConfig:
    """Return the config of a watermark from its entries."""
    return (SynthIDTextWatermarkingConfig if "ngram_len" in entries else WatermarkingConfig).from_dict(entries)


class WatermarkLogitsProcessor(RowProcessor):
    """Marks texts with green tokens; arguments as WatermarkingConfig."""

    decides_draws = True

    def __init__(
        self,
        vocab_size: int,
        device: Any = "cpu",
        greenlist_ratio: float = 0.25,
        bias: float = 2.0,
        hashing_key: int = 15485863,
        seeding_scheme: str = "lefthash",
        context_width: int = 1,
    ) -> None:
        self._rule = GreenList(vocab_size, greenlist_ratio, bias, hashing_key, seeding_scheme, context_width)

    def change(self, scores_V: Logits, tokens: Sequence[int], row: int, rows: int) -> Logits:
        return self._rule(scores_V, tokens)


class SynthIDTextWatermarkLogitsProcessor(RowProcessor):
    """Marks texts by tournaments; arguments as SynthIDTextWatermarkingConfig."""

    decides_draws = True

    def __init__(
        self,
        ngram_len: int,
        keys: list[int],
        sampling_table_size: int,
        sampling_table_seed: int,
        context_history_size: int,
        device: Any = "cpu",
        skip_first_ngram_calls: bool = False,
        debug_mode: bool = False,
    ) -> None:
        self._rule = Tournament(
            ngram_len, keys, sampling_table_size, sampling_table_seed, context_history_size, skip_first_ngram_calls
        )
        self._history = context_history_size
        self._debug_mode = debug_mode
        self._states: list[TournamentState] = []

    def change(self, scores_V: Logits, tokens: Sequence[int], row: int, rows: int) -> Logits:
        while len(self._states) < rows:
            self._states.append(TournamentState(self._history))
        scores_V = scores_V * 0 + 1 if self._debug_mode else scores_V
        return self._rule.mark(scores_V, self._states[row], tokens)
