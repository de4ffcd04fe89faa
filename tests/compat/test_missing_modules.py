"""docs/pytorch.md lists the public modules of PyTorch that the stand-in lacks."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

from support.paths import ROOT

from tallow.compat.stand_in import all_modules


def public_modules() -> set[str]:
    """The modules below `torch` whose path has no underscore in front, found without importing them."""
    spec = find_spec("torch")
    assert spec is not None
    folder = Path((spec.submodule_search_locations or [])[0])
    found = set()
    for path in folder.rglob("*.py"):
        parts = path.relative_to(folder).with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        packages = [folder.joinpath(*parts[:i], "__init__.py") for i in range(1, len(parts))]
        if parts and not any(part.startswith("_") for part in parts) and all(p.is_file() for p in packages):
            found.add(".".join(parts))
    return found


def test_the_page_lists_the_modules_that_are_missing() -> None:
    missing = public_modules() - {name.removeprefix("torch.") for name in all_modules()}
    tops = {name for name in missing if name.rpartition(".")[0] not in missing}  # of a missing package, its name only
    page = (ROOT / "docs" / "pytorch.md").read_text(encoding="utf-8")
    listed = re.search(r"```text modules\n(.*?)```", page, re.DOTALL)
    assert listed is not None
    assert sorted(listed[1].split()) == sorted(tops)
