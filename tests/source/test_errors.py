"""The docstring of tallow.errors lists every error, with a built-in that it derives from; its `warn` is used."""

from __future__ import annotations

import builtins
import re

from support.paths import ROOT

from tallow import errors

ROW = re.compile(r"[├└]── (\w+) +(\w+) ")


def test_the_tree_lists_every_error() -> None:
    listed = dict(ROW.findall(errors.__doc__ or ""))
    classes = {name for name, value in vars(errors).items() if isinstance(value, type)}
    assert set(listed) == classes - {"TallowError", "TallowWarning"}  # the docstring names the warning below the tree
    for name, parent in listed.items():
        error = getattr(errors, name)
        assert issubclass(error, errors.TallowError)
        assert issubclass(error, getattr(builtins, parent)), name


def test_the_package_warns_in_one_way() -> None:
    sources = (ROOT / "package" / "tallow").rglob("*.py")
    assert [path.name for path in sources if "warnings.warn(" in path.read_text(encoding="utf-8")] == ["errors.py"]
