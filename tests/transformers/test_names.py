"""The names that docs/transformers.md lists are there, and the classes that it says are missing are those that are."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from typing import Any

import pytest
from support.paths import ROOT

import tallow
import tallow.transformers as mine
from tallow.errors import MissingNameError
from tallow.lazy_names import import_name
from tallow.transformers.model_names import BASES, NAMES

GUIDE = (ROOT / "docs" / "transformers.md").read_text(encoding="utf-8")
# The section of the guide -> the module of the names in its tables.
MODULES = {
    "transformers": "tallow.transformers",
    "Sentence encoders": "tallow.sentence_transformers",
    "Answers, preferences and rewards": "tallow.trl",
}
# The ends of the names of models, after the name of a family.
ENDS = r"(PreTrained|Encoder|LMHead|DoubleHeads|Text|MT)?Model(WithProjection)?|For[A-Z]\w*|Backbone"


def rows() -> Iterator[tuple[str, str]]:
    """Yield (module, first cell) of the rows of the guide's tables."""
    module = ""
    for line in GUIDE.splitlines():
        if line.startswith("#"):
            module = MODULES.get(line.lstrip("# "), module)
        elif line.startswith("| ") and not line.startswith(("| names ", "| --- ")):
            yield module, line.split(" | ")[0]


LISTED = [
    (module, re.sub(r"\(.*\)$", "", name)) for module, cell in rows() for name in re.findall(r"`([\w.()=, ]+)`", cell)
]


def found(module: str, name: str) -> Any:
    """Return what a name of a table is: of the module, of a model, or of the package.  Raises: AttributeError"""
    value: Any = tallow if name.startswith("tl.") else importlib.import_module(module)
    if not hasattr(value, name.partition(".")[0]) and hasattr(mine.PreTrainedModel, name):
        return getattr(mine.PreTrainedModel, name)
    if name.startswith("tallow."):
        home, _, name = name.rpartition(".")
        return import_name(f"{home}:{name}")
    for part in name.removeprefix("tl.").split("."):
        try:
            value = getattr(value, part)
        except AttributeError:
            value = importlib.import_module(f"{value.__name__}.{part}")
    return value


def test_names_of_the_guide_are_there() -> None:
    assert len(LISTED) > 60
    assert all(found(module, name) is not None for module, name in LISTED)
    with pytest.raises((AttributeError, ImportError)):
        found("tallow.transformers", "AutoModelForNothing")


def test_missing_classes_are_those_that_the_guide_names() -> None:
    transformers = pytest.importorskip("transformers")
    families = sorted({name.removesuffix("PreTrainedModel") for name in BASES})
    pattern = re.compile(rf"({'|'.join(families)})({ENDS})")
    theirs = {name for name in dir(transformers) if pattern.fullmatch(name)}
    missing = theirs - {*NAMES, *BASES}
    sentence = re.search(r"Missing are ([^|]*)", GUIDE)
    assert sentence is not None
    assert len(theirs) > 350
    assert missing == set(re.findall(r"`(\w+)`", sentence[1]))
    for name in missing:
        with pytest.raises(MissingNameError):
            getattr(mine, name)
