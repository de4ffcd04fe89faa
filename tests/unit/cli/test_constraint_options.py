"""`tallow generate` with --json-schema, --regex and --grammar."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tallow.cli import main

SCHEMA = {
    "type": "object",
    "properties": {"pet": {"enum": ["cat", "dog"]}, "age": {"type": "integer", "maximum": 9, "minimum": 1}},
}
GRAMMAR = 'root ::= ("a" | "b"){3} "."\n'


def test_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA | {"required": ["pet", "age"]}))
    assert main(["generate", "", "--json-schema", str(tmp_path / "schema.json"), "--seed", "1"]) == 0
    value = json.loads(capsys.readouterr().out)
    assert value["pet"] in ("cat", "dog")
    assert 1 <= value["age"] <= 9


def test_a_pattern_and_a_grammar(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "grammar.gbnf").write_text(GRAMMAR)
    assert main(["generate", "Once", "--grammar", str(tmp_path / "grammar.gbnf"), "--temperature", "0"]) == 0
    assert re.fullmatch(r"Once[ab]{3}\.\n?", capsys.readouterr().out)
    assert main(["generate", "Once", "--regex", " [a-z]{3}!", "--seed", "2"]) == 0
    assert re.fullmatch(r"Once [a-z]{3}!\n?", capsys.readouterr().out)


@pytest.mark.parametrize(
    ("option", "content", "message"),
    [
        ("--json-schema", b"{", "not valid JSON"),
        ("--json-schema", b"\xff", "not UTF-8"),
        ("--json-schema", b" " * (1 << 20) + b"{}", "larger than 1 MiB"),
        ("--grammar", b"root = 5", "line 1 of the grammar"),
    ],
)
def test_files_that_are_wrong(
    option: str, content: bytes, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_bytes(content)
    assert main(["generate", "Once", option, str(tmp_path / "file")]) == 2
    assert message in capsys.readouterr().err


def test_a_missing_file_and_a_wrong_pattern(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["generate", "Once", "--json-schema", "nowhere.json"]) == 2
    assert "nowhere.json" in capsys.readouterr().err
    assert main(["generate", "Once", "--regex", "(a"]) == 2
    assert "not a regular expression" in capsys.readouterr().err


@pytest.mark.native
def test_commands_without_a_form_do_not_import_the_constraints() -> None:
    code = "import sys; from tallow.cli import chat, generate; print('tallow.generation.constrain' in sys.modules)"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stdout == "False\n"
