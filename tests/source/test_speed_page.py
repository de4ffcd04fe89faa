"""docs/speed.md: each table of numbers is from one machine and one day, which the paragraph above it names."""

from __future__ import annotations

import itertools
import re

from support.paths import ROOT

PAGE = (ROOT / "docs" / "speed.md").read_text(encoding="utf-8")
MACHINES = re.findall(r"^\| ([^|]+) \|", PAGE.split("## ")[0], re.MULTILINE)[2:]
HEAD = re.compile(r"\*\*(?P<machine>.+), \d{4}-\d\d-\d\d\.\*\*")


def test_each_table_has_one_machine_and_one_date() -> None:
    _, *sections = PAGE.split("\n## ")
    blocks = [block for section in sections for block in section.split("\n\n")]
    tables = [(above, table) for above, table in itertools.pairwise(blocks) if table.startswith("|")]
    assert len(tables) > 10
    for above, table in tables:
        head = HEAD.match(above)
        assert head, table
        assert head["machine"] in MACHINES
        assert not any(f"({name}" in table for name in MACHINES), table


def test_no_marks_stand_for_machines() -> None:
    assert not re.search("[⁰¹²³⁴⁵⁶⁷⁸⁹]", PAGE)
