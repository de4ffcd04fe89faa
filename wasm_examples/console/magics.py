"""Lines of notebooks that are not Python: `%time`, `!pip install`, `name?`. Each is translated or refused by name.

Python finds an error in the syntax where they are, so a line within a string stays as it is.
"""

from __future__ import annotations

import ast
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, NoReturn

import __main__

INSTALL = re.compile(r"[%!]?pip3? +install +(.+)")
LINE = re.compile(r"(?P<indent>\s*)(?P<sign>%|!)(?P<name>[\w-]+)\b *(?P<rest>.*)")
ASSIGNED = re.compile(r"\s*[\w., ]+= *(?P<line>[%!].+)")  # x = !ls
CELL = re.compile(r"%%(?P<name>\w+)\b *(?P<rest>[^\n]*)(?:\n(?P<body>.*))?", re.DOTALL)
QUESTION = re.compile(r"(?P<indent>\s*)(?P<name>[\w.]+)(?P<marks>\?\??)\s*")
FLAGS = re.compile(r"-(?P<name>[a-z])(?: *(?P<value>\d+))?(?:\s+|$)")
IGNORED = {
    "matplotlib": "figures appear below the cell",
    "autoreload": "a tab has no modules that change",
    "config": "it sets options of IPython",
    "load_ext": "extensions of IPython are not here",
    "precision": "it sets an option of IPython",
    "reload_ext": "extensions of IPython are not here",
}
# What to write instead, by the name of the magic or of the command.
INSTEAD = {
    "bash": "write it in Python",
    "capture": "use contextlib.redirect_stdout(io.StringIO())",
    "cat": "use print(open(name).read())",
    "cd": "use os.chdir(name)",
    "cp": "use shutil.copy(name, other)",
    "debug": "print the values, or use breakpoint() in a terminal",
    "env": "use os.environ",
    "html": "use display(IPython.display.HTML(text)), or a text cell",
    "latex": "use a text cell",
    "ls": "use os.listdir()",
    "mkdir": "use os.makedirs(name)",
    "mv": "use os.rename(name, other)",
    "pip": "only pip install works in a tab; importlib.metadata.version(name) is the version of a package",
    "pwd": "use os.getcwd()",
    "python": "use exec(open(name).read())",
    "rm": "use os.remove(name)",
    "run": "use exec(open(name).read())",
    "sh": "write it in Python",
    "time": "write it before a whole statement: %time x = f()",
    "timeit": "write it before a whole statement: %timeit f()",
    "unzip": "use shutil.unpack_archive(name)",
    "wget": "use pyodide.http.pyfetch(address), or choose the file on the page",
    "who": "use dir()",
    "whos": "use globals()",
    "writefile": "use open(name, 'w').write(text)",
    "curl": "use pyodide.http.pyfetch(address), or choose the file on the page",
    "git": "choose the files on the page",
    "nvidia-smi": "a tab computes on the CPU and with WebGPU",
}
SHELL = "a tab has no shell: write it in Python"
PREFIX = "__import__('magics')"  # the session has no name for this module


class Cell(NamedTuple):
    """A cell in Python.

    Args:
        source: with as many lines as the cell.
        installs: the arguments of its lines `pip install ...`.
        notes: what has no effect here.
        is_timed: whether it began with `%%time`.
    """

    source: str
    installs: list[str]
    notes: list[str]
    is_timed: bool = False


def translated(source: str, filename: str = "cell") -> Cell:
    """Translate a cell.  Raises: SyntaxError that says what to write instead of a magic that is not here"""
    installs: list[str] = []
    notes: list[str] = []
    is_timed = False
    start = source[: len(source) - len(source.lstrip("\n"))]  # empty lines, as in IPython
    if (cell := CELL.fullmatch(source.lstrip("\n"))) is not None:
        name, rest, body = cell["name"], cell["rest"].strip(), cell["body"] or ""
        if name == "timeit":
            flags, setup = _flags(rest, source, filename)
            return Cell(f"{PREFIX}.measure({body!r}, setup={setup!r}{flags})", installs, notes)
        if name != "time" or rest:
            line = f"%%{name} {rest}"
            _refuse(f"%%{name}", name, (filename, len(start) + 1, 1, line))
        source, is_timed = f"{start}pass\n{body}", True
    lines = source.split("\n")
    while (place := _first_error(lines)) is not None:
        line = lines[place]
        if (command := INSTALL.fullmatch(line.strip())) is not None:
            installs.append(command[1])
            lines[place] = _indent(line) + "pass"
        elif (new := _python(line, (filename, place + 1, 1, line), notes)) is not None:
            lines[place] = new
        else:
            break  # running it reports the error
        if lines[place] == line:
            break
    return Cell("\n".join(lines), installs, notes, is_timed)


def _first_error(lines: list[str]) -> int | None:
    """Return the line where Python finds an error in the syntax, None if there is none that has a line."""
    try:
        compile("\n".join(lines), "cell", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    except SyntaxError as error:
        place = (error.lineno or 0) - 1
        return place if 0 <= place < len(lines) else None
    except ValueError:  # a null character
        return None
    return None


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _python(line: str, place: tuple[str, int, int, str], notes: list[str]) -> str | None:
    """Return a line in Python, None if it is no magic.  Raises: SyntaxError"""
    if (question := QUESTION.fullmatch(line)) is not None:
        return f"{question['indent']}{PREFIX}.explain({question['name']}, {len(question['marks']) > 1})"
    if (assigned := ASSIGNED.fullmatch(line)) is not None and (inner := LINE.fullmatch(assigned["line"])) is not None:
        _refuse(inner["sign"] + inner["name"], inner["name"], place)
    if line.startswith("%%") and line[2:3].isalpha():
        raise SyntaxError(f"{line.split()[0]} is for whole cells: write it in the first line of one", place)
    if (found := LINE.fullmatch(line)) is None:
        return None
    indent, sign, name, rest = found.group("indent", "sign", "name", "rest")
    if sign == "%" and name in IGNORED:
        notes.append(f"%{name} has no effect here: {IGNORED[name]}.\n")
        return f"{indent}pass"
    if sign == "%" and name == "time" and rest:
        if (value := _expression(rest)) is not None:
            return f"{indent}{PREFIX}.timed(lambda: ({value}))"
        return f"{indent}with {PREFIX}.timing(): {rest}"
    if sign == "%" and name == "timeit" and rest:
        flags, statement = _flags(rest, line, place[0])
        return f"{indent}{PREFIX}.measure({statement!r}{flags})"
    _refuse(sign + name, name, place)


def _refuse(shown: str, name: str, place: tuple[str, int, int, str]) -> NoReturn:
    hint = INSTEAD.get(name, SHELL if shown.startswith("!") else "magics of IPython are not here: write it in Python")
    raise SyntaxError(f"{shown} does not work in a tab: {hint}", place)


def _expression(text: str) -> str | None:
    """Return an expression without the comment after it, None if the text is no expression."""
    try:
        return ast.get_source_segment(text, ast.parse(text, mode="eval").body)
    except SyntaxError:
        return None


def _flags(rest: str, line: str, filename: str) -> tuple[str, str]:
    """Return the options of `%timeit` as arguments of `measure`, and the statement after them."""
    arguments = ""
    names = {"n": "loops", "r": "runs"}
    while (flag := FLAGS.match(rest)) is not None:
        if flag["name"] not in names or flag["value"] is None:
            text = f"%timeit -{flag['name']} does not work in a tab: it takes -n LOOPS and -r RUNS"
            raise SyntaxError(text, (filename, 1, 1, line.split("\n", 1)[0]))
        arguments += f", {names[flag['name']]}={flag['value']}"
        rest = rest[flag.end() :]
    return arguments, rest


# ------------------------------------------------------------------------------- what translated lines call


@contextmanager
def timing(say: Callable[[str], Any] = lambda text: print(text, end="")) -> Iterator[None]:
    """Tell how long a block took."""
    started = time.perf_counter()
    try:
        yield
    finally:
        say(f"Wall time: {_duration(time.perf_counter() - started)}\n")


def timed(value: Callable[[], Any]) -> Any:
    """Compute a value, and tell how long that took."""
    with timing():
        return value()


def measure(statement: str, *, setup: str = "pass", loops: int = 0, runs: int = 7) -> None:
    """Print the mean and the standard deviation of the time that a statement takes, as IPython's %timeit."""
    import statistics  # late: few cells measure
    import timeit

    timer = timeit.Timer(statement, setup or "pass", globals=vars(__main__))
    loops = loops or timer.autorange()[0]
    times = [total / loops for total in timer.repeat(max(1, runs), loops)]
    spread = _duration(statistics.pstdev(times))
    print(
        f"{_duration(statistics.fmean(times))} ± {spread} per loop "
        f"(mean ± std. dev. of {len(times)} runs, {loops:,} loops each)"
    )


def explain(value: object, with_source: bool) -> None:
    """Print the documentation of a value, or its source."""
    import inspect  # late: few cells ask
    import pydoc

    try:
        if with_source:
            print(inspect.getsource(value))  # type: ignore[arg-type]  # it raises for what has none
            return
    except (OSError, TypeError):
        print("The source is not at hand.")
    print(pydoc.plain(pydoc.render_doc(value, "%s")))


def _duration(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"
