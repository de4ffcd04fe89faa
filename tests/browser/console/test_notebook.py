"""The console's notebook: cells, runs, files in Jupyter's format, what the browser keeps."""

from __future__ import annotations

import base64
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect
from support import paths
from tests.browser.consoles import ENDLESS, PAGE, Console

FILE = paths.ROOT / "wasm_examples" / "console" / "notebook-file.js"
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="  # 1 by 1


class Notebook(Console):
    """A page object: the notebook view."""

    def __init__(self, page: Page) -> None:
        super().__init__(page)
        self.cells = page.get_by_test_id("cell")
        self.sources = page.get_by_test_id("source")

    def show(self, site: str) -> Notebook:
        self.open(site)
        self.click("show-notebook")
        expect(self.cells).not_to_have_count(0)
        return self

    def fill(self, *sources: str) -> Notebook:
        """Replace the notebook by cells of code."""
        self.click("new")
        for i, source in enumerate(sources):
            if i:
                self.click("add-code")
            self.sources.nth(i).fill(source)
        return self

    def run_all(self) -> Notebook:
        self.page.evaluate("document.getElementById('status').textContent = ''")
        self.click("run-all")
        return self

    def result(self, place: int) -> Locator:
        return self.cells.nth(place).get_by_test_id("cell-output")

    def read(self, text: str | bytes, name: str = "a.ipynb") -> Notebook:
        data = text if isinstance(text, bytes) else text.encode()
        file: Any = {"name": name, "mimeType": "application/json", "buffer": data}
        self.page.get_by_test_id("open-notebook").set_input_files(file)
        return self

    def saved(self) -> tuple[str, str]:
        """Save; return the file's name and text."""
        with self.page.expect_download() as download:
            self.click("save")
        return download.value.suggested_filename, Path(download.value.path()).read_text(encoding="utf-8")


@pytest.fixture
def notebook(watched: Page) -> Notebook:
    """The view of the shared page, with one empty cell."""
    notebook = Notebook(watched)
    if not notebook.cells.first.is_visible():
        notebook.click("show-notebook")
    expect(notebook.cells).not_to_have_count(0)
    return notebook.fill("")


def file_of(*cells: dict[str, Any], **changes: Any) -> str:
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5} | changes)


def code_cell(source: Any = "", outputs: Any = (), **changes: Any) -> dict[str, Any]:
    return {
        "cell_type": "code",
        "id": "a",
        "metadata": {},
        "source": source,
        "execution_count": None,
        "outputs": outputs,
    } | changes


# ---- cells and runs


def test_cells_share_a_session_with_the_console(notebook: Notebook) -> None:
    notebook.fill("wick = 20", "wick + 1").run_all()
    expect(notebook.result(1)).to_have_text("21\n")
    notebook.click("show-console")
    assert notebook.run("wick * 2") == "40\n"
    notebook.click("show-notebook")
    expect(notebook.result(1)).to_have_text("21\n")


def test_run_all_stops_at_an_error(notebook: Notebook) -> None:
    notebook.fill("1 / 0", "'after'").run_all()
    expect(notebook.result(0)).to_contain_text("ZeroDivisionError")
    notebook.ready()
    expect(notebook.result(1)).to_be_empty()


def test_endless_cell_is_interrupted_and_the_rest_does_not_run(notebook: Notebook) -> None:
    notebook.fill(ENDLESS, "'after'").run_all()
    expect(notebook.result(0)).to_contain_text("begun")
    notebook.click("interrupt").ready()
    expect(notebook.result(0)).to_contain_text("KeyboardInterrupt")
    expect(notebook.result(1)).to_be_empty()


def test_keys(notebook: Notebook) -> None:
    source = notebook.sources.first
    source.press_sequentially("def f():\n")
    source.press_sequentially("return 7")
    expect(source).to_have_value("def f():\n    return 7")
    source.press("Shift+Enter")
    expect(notebook.cells).to_have_count(2)
    expect(notebook.sources.nth(1)).to_be_focused()
    notebook.sources.nth(1).press_sequentially("f()")
    notebook.sources.nth(1).press("Control+Enter")
    expect(notebook.result(1)).to_have_text("7\n")
    expect(notebook.cells).to_have_count(2)
    notebook.sources.nth(1).press("Escape")
    notebook.sources.nth(1).press("Tab")
    expect(notebook.sources.nth(1)).not_to_be_focused()


def test_cells_move_and_are_deleted(notebook: Notebook) -> None:
    notebook.fill("'a'", "'b'", "'c'")
    notebook.cells.nth(2).get_by_role("button", name="Up").click()
    expect(notebook.sources.nth(1)).to_have_value("'c'")
    notebook.cells.nth(0).get_by_role("button", name="Delete").click()
    expect(notebook.sources.nth(0)).to_have_value("'c'")
    notebook.cells.nth(0).get_by_role("button", name="Delete").click()
    expect(notebook.sources).to_have_count(1)
    notebook.page.get_by_test_id("cell-deleted").get_by_role("button", name="Undo").click()  # of the last one
    expect(notebook.sources.nth(0)).to_have_value("'c'")
    expect(notebook.sources.nth(1)).to_have_value("'b'")
    expect(notebook.page.get_by_test_id("cell-deleted")).to_have_count(0)
    for _ in range(2):
        notebook.cells.first.get_by_role("button", name="Delete").click()
    expect(notebook.cells).to_have_count(1)
    expect(notebook.sources.first).to_have_value("")


def test_figures_appear_without_show_and_are_closed(notebook: Notebook) -> None:
    notebook.fill("import matplotlib.pyplot as plt\nplt.plot([1, 2]);", "plt.get_fignums()").run_all()
    expect(notebook.result(1)).to_have_text("[]\n")
    expect(notebook.result(0).locator("img")).to_have_count(1)


def test_markdown_is_rendered_and_edited(notebook: Notebook) -> None:
    notebook.click("add-markdown")
    notebook.sources.nth(1).fill("# Wax\n\n<img src=x onerror='window.hit=1'>")
    notebook.sources.nth(1).press("Control+Enter")
    expect(notebook.cells.nth(1).locator("h1")).to_have_text("Wax")
    expect(notebook.cells.nth(1).locator("img")).to_have_count(0)
    assert notebook.page.evaluate("window.hit") is None
    notebook.cells.nth(1).get_by_role("button", name="Edit").click()
    expect(notebook.sources.nth(1)).to_be_visible()


def test_example_becomes_a_cell(notebook: Notebook) -> None:
    notebook.page.get_by_test_id("example").first.click()
    expect(notebook.sources.last).to_have_value(re.compile("^# "))
    expect(notebook.cells).to_have_count(1)
    notebook.page.get_by_test_id("example").nth(1).click()
    expect(notebook.cells).to_have_count(2)


def test_endless_output_is_limited_in_the_file(notebook: Notebook) -> None:
    notebook.fill("for i in range(200_000): print('flood of lines')").run_all().ready()
    expect(notebook.result(0)).to_contain_text("too long to save")
    assert len(notebook.saved()[1]) < 2_000_000


# ---- files


def test_saved_notebook_is_valid_and_opens_again(notebook: Notebook) -> None:
    import nbformat  # with its schemas

    code = "import sys\nprint('out'); print('err', file=sys.stderr)\ndisplay(tl.ones(9, 9))\ntl.ones(8, 8)"
    notebook.fill(code, "40 + 2", "1 / 0")
    notebook.click("add-markdown")
    notebook.sources.nth(3).fill("*über*")
    notebook.run_all().ready()
    expect(notebook.result(2)).to_contain_text("ZeroDivisionError")
    name, text = notebook.saved()
    assert name == "notebook.ipynb"
    saved = nbformat.reads(text, as_version=4)
    nbformat.validate(saved)
    assert (saved.nbformat, saved.nbformat_minor) == (4, 5)
    first, second, third, last = saved.cells
    assert first.source == code
    assert [output.output_type for output in first.outputs] == ["stream", "stream", "display_data", "execute_result"]
    assert base64.b64decode(first.outputs[3].data["image/png"]).startswith(b"\x89PNG")
    assert second.outputs[0].data["text/plain"] == "42"
    assert second.outputs[0].execution_count == second.execution_count
    assert (third.outputs[0].ename, third.outputs[0].evalue) == ("ZeroDivisionError", "division by zero")
    assert (last.cell_type, last.source) == ("markdown", "*über*")
    notebook.fill("").read(text, "again.ipynb")
    expect(notebook.cells).to_have_count(4)
    expect(notebook.result(0).locator("img")).to_have_count(2)
    expect(notebook.result(1)).to_have_text("42\n")
    name, again = notebook.saved()
    assert name == "again.ipynb"
    assert nbformat.reads(again, as_version=4) == saved


def test_notebook_of_jupyter_keeps_what_the_page_does_not_show(notebook: Notebook) -> None:
    import nbformat

    cells = [
        nbformat.v4.new_raw_cell("raw", metadata={"format": "text/x-rst"}),
        nbformat.v4.new_markdown_cell("m", attachments={"a.png": {"image/png": PIXEL}}),
        nbformat.v4.new_code_cell(
            "c", outputs=[nbformat.v4.new_output("display_data", {"application/json": {"a": [1]}, "text/plain": "p"})]
        ),
    ]
    written = nbformat.v4.new_notebook(
        cells=cells, metadata={"kernelspec": {"name": "k", "display_name": "K"}, "own": 1}
    )
    notebook.read(nbformat.writes(written))
    expect(notebook.cells).to_have_count(3)
    read = nbformat.reads(notebook.saved()[1], as_version=4)
    nbformat.validate(read)
    assert read.cells == written.cells
    assert read.metadata.own == 1
    assert read.metadata.kernelspec.name == "k"


HOSTILE_DATA = {
    "text/html": "<script>window.hit=1</script><img src=x onerror='window.hit=1'><b>bold</b>",
    "image/svg+xml": "<svg xmlns='http://www.w3.org/2000/svg' onload='parent.hit=1'/>",
    "image/png": "x' onerror='window.hit=1",
    "application/javascript": "window.hit=1",
}
HOSTILE_OUTPUTS = [
    *({"output_type": "display_data", "metadata": {}, "data": {kind: text}} for kind, text in HOSTILE_DATA.items()),
    {"output_type": "stream", "name": "<b>", "text": "<img src=x onerror=window.hit=1>"},
    {"output_type": "error", "ename": "<i>", "evalue": "", "traceback": ["\x1b[31m<script>window.hit=1</script>"]},
]


def test_hostile_notebook_is_shown_and_runs_nothing(notebook: Notebook, violations: list[str]) -> None:
    requested: list[str] = []
    notebook.page.on("request", lambda request: requested.append(request.url))
    markdown = {
        "cell_type": "markdown",
        "id": "b",
        "metadata": {},
        "source": "[x](javascript:window.hit=1) ![y](https://example.org/y.png)",
    }
    notebook.read(file_of(code_cell("hit = 1", HOSTILE_OUTPUTS), markdown))
    expect(notebook.result(0).locator("b").first).to_have_text("bold")
    expect(notebook.result(0)).to_contain_text("<script>window.hit=1</script>")
    assert notebook.page.evaluate("window.hit") is None
    assert not any("example.org" in url for url in requested)
    notebook.page.wait_for_timeout(500)
    violations.clear()  # the policy blocks what is active before it is removed
    notebook.click("show-console")
    assert "NameError" in notebook.run("hit")
    notebook.click("show-notebook")


def test_file_of_another_kind_is_refused_and_the_notebook_stays(notebook: Notebook) -> None:
    notebook.fill("'kept'").read("garbage")
    expect(notebook.error).to_contain_text("This notebook cannot be opened: it is not JSON.")
    expect(notebook.sources.first).to_have_value("'kept'")


def test_dropped_notebook_opens_in_the_notebook_view(notebook: Notebook) -> None:
    notebook.click("show-console")
    drop = """(text) => {
      const transfer = new DataTransfer();
      transfer.items.add(new File([text], "dropped.ipynb"));
      dispatchEvent(new DragEvent("drop", { dataTransfer: transfer, cancelable: true }));
    }"""
    notebook.page.evaluate(drop, file_of(code_cell("'dropped'")))
    expect(notebook.sources.first).to_have_value("'dropped'")
    expect(notebook.sources.first).to_be_visible()


READ = f"""
import {{ readNotebook, writeNotebook }} from {json.dumps(FILE.as_uri())};
let text = "";
for await (const chunk of process.stdin) text += chunk;
const results = JSON.parse(text).map((file) => {{
  try {{ return writeNotebook(readNotebook(file)); }} catch (error) {{
    if (error.name !== "BadNotebook") throw error;
    return "refused: " + error.message;
  }}
}});
console.log(JSON.stringify(results));
"""
REFUSED = {
    "": "not JSON",
    "[]": "no nbformat",
    "null": "no nbformat",
    "{}": "no nbformat",
    file_of(nbformat=3): "format 3",
    file_of(cells=3): "no list of cells",
    file_of({}): "cell 1 is neither",
    file_of(code_cell(), code_cell(cell_type="x")): "cell 2 is neither",
    file_of(code_cell(3)): "something else than text",
    file_of(code_cell(["a", 3])): "something else than text",
    file_of(code_cell("", {})): "no list",
    file_of(code_cell("", [3])): "an output of cell 1",
    file_of(code_cell("", [{"output_type": "display_data", "data": 3}])): "has no data",
    file_of(code_cell("", [{"output_type": "stream", "text": {}}])): "something else than text",
    file_of(*[code_cell()] * 3000): "3000 cells",
    f'{{"nbformat": 4, "cells": [], "x": "{"y" * 50_000_000}"}}': "50 MB",
}


def rewritten(node: str, files: list[str]) -> list[str]:
    command = [node, "--input-type=module", "-e", READ]
    process = subprocess.run(command, input=json.dumps(files), capture_output=True, text=True, timeout=120, check=True)
    found: list[str] = json.loads(process.stdout)
    return found


def test_unusable_files_are_refused_with_a_reason(node: str) -> None:
    for why, result in zip(REFUSED.values(), rewritten(node, list(REFUSED)), strict=True):
        assert result.startswith("refused: This notebook cannot be opened: "), result[:200]
        assert why in result


def test_what_is_read_is_written_as_valid(node: str) -> None:
    import nbformat

    odd = [
        file_of(code_cell(["a\n", "b"], id="not an id!"), code_cell(id="a"), code_cell(id="a"), nbformat_minor=2),
        file_of(code_cell("x", [{"output_type": "execute_result", "data": {"text/plain": ["a", "b"]}, "metadata": 3}])),
        file_of(code_cell("x", [{"output_type": "error"}], execution_count="many"), metadata=[1]),
        file_of(),
    ]
    for text in rewritten(node, odd):
        nbformat.validate(json.loads(text))
    assert json.loads(rewritten(node, odd)[0])["cells"][0]["source"] == ["a\n", "b"]


# ---- what the browser keeps


def test_notebook_survives_a_reload(page: Page, site: str) -> None:
    notebook = Notebook(page).show(site)
    notebook.sources.first.fill("6 * 7")
    notebook.run_all()
    expect(notebook.result(0)).to_have_text("42\n")
    page.wait_for_timeout(1000)
    page.reload()
    expect(notebook.sources.first).to_have_value("6 * 7")
    expect(notebook.result(0)).to_have_text("42\n")


def test_second_tab_does_not_overwrite(browser: Browser, site: str) -> None:
    context = browser.new_context()
    first, second = (Notebook(context.new_page()) for _ in range(2))
    first.show(site).sources.first.fill("'first'")
    first.page.wait_for_timeout(1000)
    second.page.goto(site + PAGE)
    expect(second.status).to_contain_text("open in another tab")
    second.sources.first.fill("'second'")
    second.page.wait_for_timeout(1000)
    second.page.close()
    first.page.reload()
    expect(first.sources.first).to_have_value("'first'")
    context.close()


def test_damaged_kept_notebook_is_reported(page: Page, site: str) -> None:
    notebook = Notebook(page).show(site)
    page.evaluate("""async () => {
      const { NotebookStore } = await import("/wasm_examples/console/notebook-store.js");
      await new NotebookStore().write("garbage");
    }""")
    page.reload()
    expect(notebook.error).to_contain_text("cannot be opened")
    expect(notebook.cells).to_have_count(1)


def test_link_opens_the_console(page: Page, site: str) -> None:
    notebook = Notebook(page).show(site)
    page.goto(f"{site}{PAGE}#code=1%2B1")
    expect(notebook.prompt).to_have_value("1+1")
    expect(notebook.prompt).to_be_visible()


def test_phone_needs_no_sideways_scroll(notebook: Notebook) -> None:
    desktop = notebook.page.viewport_size
    assert desktop
    notebook.page.set_viewport_size({"width": 360, "height": 740})
    notebook.fill(
        "print('x' * 500)\ntl.ones(900, 900)", "import matplotlib.pyplot as plt\nplt.figure(figsize=(20, 2));"
    ).run_all()
    expect(notebook.result(1).locator("img")).to_have_count(1)
    assert notebook.page.evaluate("document.documentElement.scrollWidth") == 360
    notebook.page.set_viewport_size(desktop)
