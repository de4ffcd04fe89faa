"""The stages of an encoder of images that serves as the eyes of another model: their names, and which are read.

A stage is a layer of a ViT, or the blocks of one width of a ResNet; "stem" is what comes before the first.

Source:  names as in transformers' `backbone_utils.py`
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, TypeVar

from tallow.models.config import tupled

T = TypeVar("T")


def stage_name(place: int) -> str:
    """Return the name of a stage by its place, 0 for the stem."""
    return f"stage{place}" if place else "stem"


def place_of(name: str) -> int | None:
    """Return the place of a stage by its name, or None for another name."""
    found = re.fullmatch(r"stage([1-9]\d{0,8})", name)
    return int(found[1]) if found else 0 if name == "stem" else None


def stages_of(entries: dict[str, Any], count: Any) -> None:
    """Replace the entries of a config about its stages by `out_features`, in place.

    Args:    count: the number of stages after the stem, as the entries have it
    """
    entries.pop("stage_names", None)
    for name in ("out_features", "out_indices"):
        entries[name] = entries.pop(f"_{name}", None) or entries.get(name)
    indices = entries.pop("out_indices")
    tupled(entries, "out_features")
    if entries.get("out_features") is None and isinstance(indices, list | tuple) and type(count) is int:
        places = [index + count + 1 if type(index) is int and index < 0 else index for index in indices]
        entries["out_features"] = tuple(stage_name(place) for place in places)


def check_stages(config: Any, count: int) -> None:
    """Check that `config.out_features` are stages, each once and in order.  Raises: ArgumentError"""

    def valid(names: Sequence[str]) -> bool:
        places = [place_of(name) for name in names]
        known = [place for place in places if place is not None and place <= count]
        return len(known) == len(names) and known == sorted(set(known))

    config.require("out_features", f"some of stem, stage1 to stage{count}, in this order", valid)


def chosen(out_features: Sequence[str], maps: Sequence[T]) -> tuple[T, ...]:
    """Return what belongs to some stages, to the last one where none is named.

    Args:    maps: of the stem, and of each stage
    """
    return tuple(maps[place_of(name) or 0] for name in out_features) or (maps[-1],)
