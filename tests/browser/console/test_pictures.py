"""The console: packages that load when imported, values with pictures, files in and out, what survives a reload."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect
from tests.browser.conftest import START_MS
from tests.browser.consoles import PAGE, Console
from tests.browser.index import wheel

PIXELS = """
async ([image]) => {
  await image.decode();
  const size = { width: image.naturalWidth, height: image.naturalHeight };
  const canvas = Object.assign(document.createElement("canvas"), size);
  const context = canvas.getContext("2d");
  context.drawImage(image, 0, 0);
  const { data } = context.getImageData(0, 0, canvas.width, canvas.height);
  return { width: canvas.width, height: canvas.height, data: Array.from(data) };
}
"""


def pixels(console: Console) -> Any:
    """Return the pixels (N, M, 4) of the only picture, as the browser decodes it."""
    image = console.output.locator("img")
    expect(image).to_have_count(1)
    found = image.evaluate(f"(image) => ({PIXELS})([image])")
    return np.array(found["data"], dtype=np.uint8).reshape(found["height"], found["width"], 4)


# ---- imports


def test_torch_is_tallow(console: Console) -> None:
    value = "(torch.ones(2).sum().item(), torch.Tensor is tl.Tensor, layers.Linear)"
    assert console.run(f"import torch\nfrom torch import nn as layers\n{value}").startswith(
        "(2.0, True, <class 'tallow."
    )


def test_cuda_is_available_returns_false_in_a_tab(console: Console) -> None:
    """The page has every package that tallow imports: the answer is False, without an error."""
    assert console.run("import torch\ntorch.cuda.is_available()") == "False\n"


def test_matplotlib_loads_when_imported_and_draws(console: Console) -> None:
    cell = console.run("import matplotlib.pyplot as plt\nplt.figure(figsize=(2, 1), facecolor='red')\nplt.show()")
    assert "Loading matplotlib." in cell
    assert "Traceback" not in cell
    assert tuple(pixels(console)[0, 0]) == (255, 0, 0, 255)
    assert "Loading" not in console.run("import matplotlib; matplotlib.get_backend()")


def test_figure_as_last_value_and_figures_that_change(console: Console) -> None:
    console.run("import matplotlib.pyplot as plt\nfig, ax = plt.subplots()\nfig")
    expect(console.output.locator("img")).to_have_count(1)
    expect(console.output.locator("img")).to_have_attribute("alt", re.compile("Figure"))
    console.run("line = ax.plot([1, 2])")
    expect(console.output.locator("img")).to_have_count(1)
    console.run("1 + 1")
    expect(console.output.locator("img")).to_have_count(0)
    console.run("plt.close('all')")


def test_micropip_installs_a_wheel(console: Console, site: str) -> None:
    ((file, content),) = wheel("wick", {"wick.py": "LENGTH = 7\n"}).items()
    address = f"{site}{file}"
    console.page.context.route(address, lambda route: route.fulfill(body=content, content_type="application/zip"))
    cell = console.run(f"import micropip\nawait micropip.install({address!r})\nimport wick\nwick.LENGTH")
    assert cell.endswith("7\n"), cell


def test_packages_without_a_connection_are_named(page: Page, site: str) -> None:
    page.context.route("**/runtime/pyodide-3*/pyodide-lock.json", lambda route: route.abort())
    cell = Console(page).open(site).run("import scipy")
    assert "scipy: the list of packages could not be loaded" in cell
    assert "check the connection" in cell
    assert "ModuleNotFoundError" in cell


def test_package_that_cannot_be_downloaded_is_named(console: Console) -> None:
    console.page.route("https://cdn.jsdelivr.net/**", lambda route: route.abort())
    cell = console.run("import scipy")
    console.page.unroute("https://cdn.jsdelivr.net/**")
    assert "scipy could not be loaded: check the connection" in cell
    assert "ModuleNotFoundError" in cell


# ---- pictures


def test_matrix_is_a_heat_map_beside_its_text(console: Console) -> None:
    cell = console.run("tl.arange(100.).reshape(10, 10)")
    assert cell.startswith("tensor([[ 0.,")
    image = pixels(console)
    assert image.shape == (160, 160, 4)
    light = image[..., :3].sum(axis=2, dtype=int)[::16, ::16].reshape(-1)
    assert (np.diff(light) >= 0).all()
    assert light[-1] > light[0] + 500


def test_signs_differ_in_colour_and_no_number_is_transparent(console: Console) -> None:
    console.run("t = tl.zeros(8, 8); t[0, 0] = -2; t[0, 1] = 1; t[0, 2] = float('nan'); t[0, 3] = float('inf'); t")
    image = pixels(console)[::20, ::20].astype(int)
    assert image[0, 0, 2] > image[0, 0, 0] + 50  # blue
    assert image[0, 1, 0] > image[0, 1, 2] + 50  # red
    assert image[0, 2, 3] == 0
    assert image[1, 0, :3].min() > 220
    assert image[0, 3, 0] > image[0, 3, 2] + 50


def test_image_of_three_channels_has_its_colours(console: Console) -> None:
    console.run("t = tl.zeros(3, 8, 9); t[0] = 1; t[2, 0] = 1; t")
    image = pixels(console)
    step = image.shape[0] // 8
    assert image.shape[1] == 9 * step
    assert tuple(image[0, 0]) == (255, 0, 255, 255)
    assert tuple(image[-1, -1]) == (255, 0, 0, 255)


TEXTS = ("tl.ones(2, 3)", "tl.ones(100)", "tl.ones(1, 9)", "tl.ones(0, 9)", "tl.ones(2, 9, 9, 9)", "nn.Linear(9, 9)")


@pytest.mark.parametrize("value", TEXTS)
def test_other_values_are_text(console: Console, value: str) -> None:
    console.run(value)
    expect(console.output.locator("img")).to_have_count(0)


def test_pictures_of_tensors_can_be_off_and_asked_for(console: Console) -> None:
    switch = console.page.get_by_test_id("pictures")
    switch.uncheck()
    console.run("tl.ones(9, 9)")
    expect(console.output.locator("img")).to_have_count(0)
    console.run("show(tl.ones(2, 2) > 0)")
    expect(console.output.locator("img")).to_have_count(1)
    switch.check()


def test_large_matrix_is_sampled(console: Console) -> None:
    console.run("tl.arange(3000 * 1100).reshape(3000, 1100)")
    image = console.output.locator("img")
    expect(image).to_have_js_property("complete", True)
    assert image.evaluate("(image) => [image.naturalWidth, image.naturalHeight]") == [550, 1000]


RED = "<rect width='9' height='9' fill='red'/>"
HOSTILE = """
class Hostile:
    def __repr__(self): return "plain <b>text</b>"
    def _repr_html_(self): return '''
      <table><tr><td onclick="window.hit=1">cell</td></tr></table><script>window.hit=1</script>
      <style>body{display:none}</style><img src=x onerror="window.hit=1"><img src="https://example.org/leak.png">
      <iframe srcdoc="<script>parent.hit=1</script>"></iframe><form action="https://example.org"><input name=q></form>
      <a href="javascript:window.hit=1">link</a><p id="prompt" style="position:fixed">x</p>'''
Hostile()
"""


def test_html_of_a_value_is_sanitised(console: Console, violations: list[str]) -> None:
    requested: list[str] = []
    console.page.on("request", lambda request: requested.append(request.url))
    console.run(HOSTILE)
    shown = console.output.locator(".rich")
    expect(shown.locator("td")).to_have_text("cell")
    html = shown.inner_html()
    assert not re.search(r"<(script|style|iframe|form|input)|[ ](on\w+|style|id|srcdoc)=|javascript:", html), html
    assert console.page.evaluate("window.hit") is None
    assert not any("example.org" in url for url in requested)
    console.page.wait_for_timeout(500)
    violations.clear()  # the policy blocks what is active before it is removed


def test_svg_is_an_image_that_runs_nothing(console: Console) -> None:
    size = "width='9' height='9'"
    active = "onload='parent.hit=1'><script>parent.hit=1</script>"
    svg = f"<svg xmlns='http://www.w3.org/2000/svg' {size} {active}{RED}</svg>"
    console.run(f"class Svg:\n    def _repr_svg_(self): return {svg!r}\nSvg()")
    assert tuple(pixels(console)[4, 4]) == (255, 0, 0, 255)
    assert console.page.evaluate("window.hit") is None


def test_broken_pictures_are_said(console: Console) -> None:
    console.run("class A:\n    def _repr_png_(self): return b'no picture'\nA()")
    expect(console.output).to_contain_text("The picture is damaged.")
    cell = console.run("class A:\n    def _repr_png_(self): 1 / 0\n    def __repr__(self): return 'words'\nA()")
    assert "A._repr_png_ failed: ZeroDivisionError" in cell
    assert "words" in cell
    assert "returned int" in console.run("class A:\n    def _repr_png_(self): return 3\nA()")
    assert "is not shown" in console.run("class A:\n    def _repr_svg_(self): return 'x' * 30_000_000\nA()")


def test_repr_that_fails_is_an_error_of_the_cell(console: Console) -> None:
    assert "ZeroDivisionError" in console.run("class A:\n    def __repr__(self): return 1 / 0\nA()")
    assert console.run("1") == "1\n"


def test_recursion_that_stops_python_is_said(page: Page, site: str) -> None:
    console = Console(page).open(site)
    console.start("class A:\n    def __repr__(self): return repr(self)\nA()")
    expect(console.error).to_contain_text("Python has stopped: the call stack overflowed")
    console.start("1 + 1")
    expect(console.error).to_contain_text("Python has stopped")
    page.get_by_role("button", name="Restart Python").click()
    expect(console.status).to_contain_text("Ready: tallow", timeout=START_MS)
    assert console.run("1 + 1") == "2\n"


def test_flood_of_pictures_ends(console: Console) -> None:
    console.run("for i in range(300): display(tl.ones(8, 8))")
    expect(console.output).to_contain_text("The page shows 100 pictures of a cell.")
    assert 10 < console.output.locator("img").count() <= 100
    assert console.run("2") == "2\n"


def test_memory_that_is_exhausted_is_an_error(console: Console) -> None:
    assert "MemoryError" in console.run("x = [np.ones(2**26) for i in range(16)]")
    assert console.run("2") == "2\n"


# ---- files


def test_chosen_file_is_in_the_working_folder(console: Console, tmp_path: Path) -> None:
    path = tmp_path / "grüße 1.csv"
    path.write_bytes(b"a,b\n1,2\n")
    console.page.get_by_test_id("choose-files").set_input_files(path)
    files = console.page.get_by_test_id("files")
    expect(files).to_contain_text("grüße 1.csv")
    assert console.run("open('grüße 1.csv').read()") == "'a,b\\n1,2\\n'\n"
    console.page.get_by_role("button", name="Delete grüße 1.csv").click()
    expect(files).not_to_contain_text("grüße")
    assert "FileNotFoundError" in console.run("open('grüße 1.csv')")


DROP = """
(names) => {
  const transfer = new DataTransfer();
  for (const name of names) transfer.items.add(new File(["content of " + name], name));
  dispatchEvent(new DragEvent("dragover", { dataTransfer: transfer, cancelable: true }));
  dispatchEvent(new DragEvent("drop", { dataTransfer: transfer, cancelable: true }));
}
"""


def test_files_are_dropped(console: Console) -> None:
    console.page.evaluate(DROP, ["one.txt", "<img src=x onerror=window.hit=1>.txt"])
    expect(console.page.get_by_test_id("files").locator("li")).to_have_count(2)
    expect(console.page.locator("#drop")).to_be_hidden()
    assert console.run("import os; [os.remove(name) for name in sorted(os.listdir('.'))]; os.listdir('.')") == "[]\n"
    assert console.page.evaluate("window.hit") is None


def test_files_that_code_writes_are_saved(console: Console) -> None:
    console.run("open('out.txt', 'w').write('flame')")
    with console.page.expect_download() as saved:
        console.page.get_by_role("button", name="Save out.txt").click()
    assert Path(saved.value.path()).read_text() == "flame"
    with console.page.expect_download() as saved:
        console.run("download('out.txt')")
    assert saved.value.suggested_filename == "out.txt"
    assert "FileNotFoundError" in console.run("download('none.txt')")
    console.run("os.remove('out.txt')")


def test_file_cannot_replace_a_module(console: Console) -> None:
    console.page.evaluate(DROP, ["random.py"])
    expect(console.page.get_by_test_id("files")).to_contain_text("random.py")
    assert console.run("import random; random.randint(1, 1)") == "1\n"
    console.run("import os; os.remove('random.py')")


# ---- what survives


def test_history_survives_a_reload_and_is_shared_by_tabs(browser: Browser, site: str) -> None:
    context = browser.new_context()
    pages = [context.new_page() for _ in range(2)]
    first, second = (Console(page) for page in pages)
    for console in (first, second):
        console.page.goto(site + PAGE)
    first.start("'one'")
    second.start("'two'")
    first.page.reload()
    for entry in ("'two'", "'one'", "'one'"):
        first.prompt.press("ArrowUp")
        expect(first.prompt).to_have_value(entry)
    first.click("forget")
    first.page.reload()
    first.prompt.press("ArrowUp")
    expect(first.prompt).to_have_value("")
    context.close()


def test_damaged_history_is_ignored_and_history_is_limited(page: Page, site: str) -> None:
    page.route("**/web/worker.js", lambda route: route.abort())  # Python need not start
    page.goto(site + PAGE)
    for stored in ("garbage", "3", '{"length": 9}', "[1, null]"):
        page.evaluate("(text) => localStorage.setItem('tallow-console-history', text)", stored)
        page.reload()
        Console(page).prompt.press("ArrowUp")
        expect(Console(page).prompt).to_have_value("")
    page.evaluate("localStorage.setItem('tallow-console-history', JSON.stringify(Array(900).fill('x'.repeat(3000))))")
    page.reload()
    Console(page).start("'new'")
    kept = page.evaluate("JSON.parse(localStorage.getItem('tallow-console-history'))")
    assert kept[-1] == "'new'"
    assert sum(map(len, kept)) <= 200_000


def test_code_is_coloured_where_it_is_typed_and_shown(console: Console) -> None:
    console.prompt.fill("def f(): return 'text'  # why")
    under = console.page.locator(".entry .python")
    expect(under).to_have_text("def f(): return 'text'  # why")
    assert under.locator(".keyword").all_text_contents() == ["def", "return"]
    assert under.locator(".string").all_text_contents() == ["'text'"]
    console.prompt.press("Control+Enter")
    console.ready()
    expect(console.output.locator(".given .comment")).to_have_text("# why")


def test_pictures_load_when_there_is_one(page: Page, site: str) -> None:
    requested: list[str] = []
    page.on("request", lambda request: requested.append(request.url.rpartition("/")[2]))
    console = Console(page).open(site)
    console.run("1 + 1")
    assert not {"pictures.js", "markdown.js", "notebook.js", "cell.js"} & set(requested)
    console.run("tl.ones(9, 9)")
    expect(console.output.locator("img")).to_have_count(1, timeout=START_MS)
    assert "pictures.js" in requested
