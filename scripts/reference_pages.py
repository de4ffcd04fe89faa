"""Pages of the documentation that come from the code: the commands, docstrings as Markdown, the list of the modules."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

SPECIAL = re.compile(r"(`[^`]*`)|([\\*_<>|\[\]])")
# A part of a docstring: "Args:", with its text behind it or below it.
PART = re.compile(r"^([A-Z][\w ]*):(?:\s+|$)(.*)")
ITEM = re.compile(r"^(\*{0,2}\w[\w.,* ]*): +(.*)")
MOST = 88  # characters of a signature in one line
COMMANDS_LEDE = """\
`tallow COMMAND --help` prints the same, `tallow help` the list. Commands write text to stdout, and errors in one
line with a hint to stderr. They end with 0 for success, 1 if they failed, 2 for wrong arguments or files, and 130
after Ctrl-C.
"""


# ------------------------------------------------------------------------------- the commands


def commands() -> str:
    """Return the page of all commands with their options, from their parsers."""
    from tallow.cli.parser import COMMANDS, parser_of

    page = [
        "# Commands",
        COMMANDS_LEDE,
    ]
    whole = parser_of(COMMANDS)
    (choices,) = (action for action in whole._actions if isinstance(action, argparse._SubParsersAction))
    for name in COMMANDS:
        page += _command(name, choices.choices[name])
    return "\n\n".join(page) + "\n"


def _command(name: str, parser: argparse.ArgumentParser) -> Iterator[str]:
    formatter = parser._get_formatter()
    yield f"## tallow {name}"
    yield from _description(parser.description or "")
    for group in parser._action_groups:
        rows = [
            _row(formatter, action)
            for action in group._group_actions
            if action.help is not argparse.SUPPRESS and action.dest != "help"
        ]
        if rows:
            title = str(group.title).capitalize()
            yield (
                f"### {name}: {title}\n\n{escaped(group.description)}".strip()
                if group.description
                else f"### {name}: {title}"
            )
            yield "\n".join(["| option | meaning |", "| --- | --- |", *rows])


def _description(text: str) -> Iterator[str]:
    """Yield paragraphs; those with an indented line are commands to type."""
    for paragraph in re.split(r"\n\s*\n", text.strip("\n")):
        lines = paragraph.strip("\n").splitlines()
        if all(line.startswith(" ") for line in lines):
            yield "```\n" + "\n".join(line.strip() for line in lines) + "\n```"
        else:
            yield escaped(" ".join(lines))


def _row(formatter: argparse.HelpFormatter, action: argparse.Action) -> str:
    names = formatter._format_action_invocation(action).replace("|", "\\|")
    meaning = " ".join(formatter._expand_help(action).split()) if action.help else ""
    return f"| `{names}` | {escaped(meaning)} |"


# ------------------------------------------------------------------------------- docstrings


def escaped(text: str) -> str:
    """Return a text without marks of Markdown, except for code in backticks."""
    return SPECIAL.sub(lambda found: found[1] or f"\\{found[2]}", text)


def fields(paragraph: str) -> str | None:
    """Return a paragraph such as "Args: ..." as Markdown, with a list of its names; None if it has another form."""
    parts: list[tuple[str, list[str]]] = []
    for line in paragraph.splitlines():
        if (found := PART.match(line)) is not None:
            parts.append((found[1], [found[2]] if found[2] else []))
        elif parts and line.startswith(" "):
            parts[-1][1].append(line)
        else:
            return None
    return "\n\n".join(_field(name, lines) for name, lines in parts)


def _field(name: str, lines: Sequence[str]) -> str:
    indents = [len(line) - len(line.lstrip()) for line in lines[1:]]
    least = min(indents, default=0)
    texts = [line.strip() for line in lines]
    # Items begin at the least indentation; what is further in goes on with the item above it.
    begins = [True, *(indent == least for indent in indents)]
    items: list[list[str]] = []
    for text, is_first in zip(texts, begins, strict=False):
        if items and not (is_first and ITEM.match(text)):
            items[-1].append(text)
        else:
            items.append([text])
    joined = [" ".join(item) for item in items]
    found = [ITEM.match(text) for text in joined]
    if name in ("Args", "Attributes", "Arguments") and joined and all(found):
        rows = [f"- `{match[1]}`: {escaped(match[2])}" for match in found if match is not None]
        return f"**{name}**\n\n" + "\n".join(rows)
    return f"**{name}:** {escaped(' '.join(joined))}"


def wrapped(name: str, signature: str) -> str:
    """Return a definition in one line, or with a line for each parameter if it is long."""
    whole = name + signature
    if len(whole) <= MOST or not signature.startswith("("):
        return whole
    depth, start, parts, end = 0, 1, list[str](), len(signature)
    for place, letter in enumerate(signature):
        depth += (letter in "([{") - (letter in ")]}")
        if depth == 0:
            end = place
            break
        if depth == 1 and letter == ",":
            parts.append(signature[start:place].strip())
            start = place + 1
    parts.append(signature[start:end].strip())
    lines = "".join(f"    {part},\n" for part in parts if part)
    return f"{name}(\n{lines}{signature[end:]}"


# ------------------------------------------------------------------------------- the list of the modules


def index(menus: Mapping[str, Iterable[str]], described: Mapping[str, Any]) -> str:
    """Return the page that lists the modules of the reference.

    Args:  described: the modules by name, whose first sentence is shown
    """
    page = [
        "# Reference",
        "Every public name, from its docstring. The commands have [a page of their own](../commands.md).",
    ]
    for menu, modules in menus.items():
        rows = "\n".join(f"| [{name}]({name}.md) | {escaped(_first(described[name]))} |" for name in modules)
        page.append(f"## {menu}\n\n| module | what it has |\n| --- | --- |\n{rows}")
    return "\n\n".join(page) + "\n"


def _first(subject: Any) -> str:
    paragraph = " ".join((subject.__doc__ or "").strip().split("\n\n")[0].split())
    return re.split(r"(?<=[.]) (?=[A-Z])", paragraph)[0]
