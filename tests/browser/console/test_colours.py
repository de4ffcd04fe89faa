"""wasm_examples/console/colours.js in Node, compared with Python's own tokenizer on this repository's code."""

from __future__ import annotations

import io
import json
import keyword
import subprocess
import tokenize

import pytest
from support import paths

MODULE = paths.ROOT / "wasm_examples" / "console" / "colours.js"
RUN = f"""
import {{ tokensOf }} from {json.dumps(MODULE.as_uri())};
let text = "";
for await (const chunk of process.stdin) text += chunk;
console.log(JSON.stringify(JSON.parse(text).map(tokensOf)));
"""
KINDS = {tokenize.COMMENT: "comment", tokenize.NUMBER: "number", tokenize.STRING: "string"}


def coloured(node: str, codes: list[str]) -> list[list[tuple[str, str]]]:
    command = [node, "--input-type=module", "-e", RUN]
    process = subprocess.run(command, input=json.dumps(codes), capture_output=True, text=True, timeout=120, check=True)
    return [[(kind, text) for kind, text in tokens] for tokens in json.loads(process.stdout)]


def expected(code: str) -> list[tuple[str, str]]:
    """Return the comments, numbers, strings and keywords, by Python's tokenizer. Formatted strings are one token."""
    found: list[tuple[str, str]] = []
    lines = code.splitlines(keepends=True)
    depth, begin = 0, (0, 0)
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        name = tokenize.tok_name[token.type]
        if name in ("FSTRING_START", "TSTRING_START"):
            begin = begin if depth else token.start
            depth += 1
        elif name in ("FSTRING_END", "TSTRING_END"):
            depth -= 1
            if depth == 0:
                found.append(("string", between(lines, begin, token.end)))
        elif depth:
            continue
        elif token.type in KINDS:
            found.append((KINDS[token.type], token.string))
        elif token.type == tokenize.NAME and keyword.iskeyword(token.string):
            found.append(("keyword", token.string))
    return found


def between(lines: list[str], start: tuple[int, int], end: tuple[int, int]) -> str:
    rows = lines[start[0] - 1 : end[0]]
    rows[-1] = rows[-1][: end[1]]
    rows[0] = rows[0][start[1] :]
    return "".join(rows)


def sources() -> list[str]:
    folders = ("package/tallow", "wasm_examples", "web", "tests/unit")
    found = (path for folder in folders for path in sorted((paths.ROOT / folder).rglob("*.py")))
    texts = (path.read_text(encoding="utf-8") for path in found)
    return [text for text in texts if len(text) < 50_000][::12]


def test_colours_are_those_of_the_tokenizer(node: str) -> None:
    codes = sources()
    assert len(codes) > 100
    for code, tokens in zip(codes, coloured(node, codes), strict=True):
        assert "".join(text for _, text in tokens) == code
        assert [token for token in tokens if token[0] not in ("", "name")] == expected(code)


@pytest.mark.parametrize(
    "code",
    [
        "rb'a' Rb\"b\" f'{x!r:>{width}}' f\"{d['a']}\" f'{{literal}}' f'{\"nested\"}'",
        "0xFF_a 1_000.5e-3j .5 5. 1e9 0b1_0 0o17 1j x1 _2",
        "'it\\'s' \"\"\"a\n'b' \\\"\"\" c\"\"\"\n'''x'''",
        "'a\\\nb'\n# über 'x'\nnaïve = 'é'",
    ],
)
def test_unusual_tokens(node: str, code: str) -> None:
    (tokens,) = coloured(node, [code])
    assert [token for token in tokens if token[0] != ""] == expected(code)


@pytest.mark.parametrize(
    "code", ["'open", '"""open\n', "f'{open", "f'''{\n", "\\", "", "@", "\x00\ud800", "((((" * 1000, "f'{" * 16_000]
)
def test_unfinished_code_keeps_its_text(node: str, code: str) -> None:
    (tokens,) = coloured(node, [code])
    assert "".join(text for _, text in tokens) == code


def test_defined_names_and_decorators(node: str) -> None:
    (tokens,) = coloured(node, ["@decorator.x\nclass Flame: pass\nasync def burn(a): a @ b"])
    assert [text for kind, text in tokens if kind == "name"] == ["@decorator.x", "Flame", "burn"]
