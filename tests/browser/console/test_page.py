"""wasm_examples/console in Chromium: a Python session in the page."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, Page, expect
from support import paths
from support.chats import CHATML, save_tokenizer
from support.gguf_files import write_llama2c
from tests.browser.conftest import START_MS, serving
from tests.browser.consoles import ENDLESS, PAGE, Console
from tests.browser.hub import Hub

from tallow.models.built_in import stories
from tallow.text import Tokenizer


def test_values_and_prints_are_shown(console: Console) -> None:
    assert console.run("1 + 1") == "2\n"
    assert console.run("print('a'); print('b')") == "a\nb\n"
    assert console.run("None") == ""
    assert console.run("3;") == ""
    assert console.run("x = 4\nx * x") == "16\n"
    assert console.run("_ + 1") == "17\n"


def test_tallow_is_imported(console: Console) -> None:
    code = "x = tl.tensor([1.0, 2.0], requires_grad=True)\n(x**3).sum().backward()\nx.grad"
    assert console.run(code) == "tensor([ 3., 12.])\n"
    assert console.run("[nn.Linear(2, 2), F.relu, optim.SGD, np.pi][-1]") == "3.141592653589793\n"


@pytest.fixture(scope="module")
def first_visit(browser: Browser, site_dir: Path) -> Iterator[Console]:
    """A page that starts Python without the snapshot."""
    context = browser.new_context()
    with serving(site_dir) as server:
        yield Console(context.new_page()).open(server.url)
    context.close()


def test_no_bytecode_is_compiled_at_start(first_visit: Console) -> None:
    """PEP 552: bytecode that Python caches has a date in its header, the site's has the flag of a hash."""
    code = """
import sys, tallow
def brought(path):
    with open(path, "rb") as file:
        return path.endswith(".pyc") and file.read(8)[4] == 1
packages = [m.__file__ for name, m in list(sys.modules.items()) if name.partition(".")[0] in ("numpy", "tallow")]
used = [path for path in packages if not path.endswith(".so")]
print(len(used) > 100, [path for path in used if not brought(path)], sys.modules["json.decoder"].__file__)
"""
    assert first_visit.run(code) == "True [] /lib/python314.zip/json/decoder.pyc\n"


def test_blocks_go_on_until_an_empty_line(console: Console) -> None:
    prompt = console.prompt
    prompt.press_sequentially("def half(n):")
    prompt.press("Enter")
    expect(prompt).to_have_value("def half(n):\n    ")
    prompt.press_sequentially("return n / 2")
    prompt.press("Enter")
    expect(prompt).to_have_value("def half(n):\n    return n / 2\n    ")
    prompt.press("Enter")
    expect(prompt).to_have_value("")
    prompt.press_sequentially("half(5)")
    prompt.press("Enter")
    expect(console.output).to_contain_text(">>> def half(n):\n...     return n / 2\n")
    expect(console.output).to_contain_text("2.5")


@pytest.mark.parametrize("beginning", ["f(1,", "'''text", "x = [", "if x:", "@decorator", "1 + \\"])
def test_incomplete_code_continues(console: Console, beginning: str) -> None:
    console.prompt.fill(beginning)
    console.prompt.press("Enter")
    expect(console.prompt).to_have_value(re.compile(f"^{re.escape(beginning)}\n"))
    expect(console.output).to_have_text("")


def test_enter_in_the_middle_and_shift_enter_do_not_run(console: Console) -> None:
    console.prompt.fill("a = 1")
    console.prompt.press("Shift+Enter")
    console.prompt.press_sequentially("a + 1")
    expect(console.prompt).to_have_value("a = 1\na + 1")
    console.prompt.press("Home")
    console.prompt.press("Enter")
    expect(console.prompt).to_have_value("a = 1\n\na + 1")
    console.prompt.press("Control+Enter")
    expect(console.output).to_contain_text("2")


def test_keys_typed_before_python_answers_are_kept(console: Console) -> None:
    console.prompt.press_sequentially("a = 20\nb = a + 1\nb * 2", delay=0)
    console.prompt.press("Control+Enter")
    expect(console.output).to_contain_text("42")


def test_errors_show_the_line_and_the_session_continues(console: Console) -> None:
    cell = console.run("def broken():\n    return 1 / 0\nkept = 7\nbroken()")
    assert cell.startswith("Traceback (most recent call last):\n  File ")
    assert "    return 1 / 0\n" in cell
    assert "app.py" not in cell
    expect(console.output.locator(".error b")).to_have_text("ZeroDivisionError: division by zero\n")
    assert "SyntaxError" in console.run("1 +")
    assert "hint: transpose" in console.run("tl.ones(2, 3) @ tl.ones(2, 3)")
    assert "raise SystemExit" not in console.run("exit()")
    assert console.run("kept") == "7\n"


def test_await_works_at_the_prompt(console: Console) -> None:
    assert console.run("import asyncio\nawait asyncio.sleep(0.01, 'slept')") == "'slept'\n"


def test_input_raises(console: Console) -> None:
    assert "input() is not available in a page" in console.run("input('name? ')")


def test_classes_of_the_session_are_pickled(console: Console) -> None:
    code = "import pickle\nclass A: n = 3\npickle.loads(pickle.dumps(A())).n"
    assert console.run(code) == "3\n"


# ---- output


def test_output_is_streamed_and_code_can_be_interrupted(console: Console) -> None:
    console.run("survivor = 5")
    console.start(ENDLESS)
    console.wrote("begun")
    expect(console.status).to_have_text("Running.")
    console.click("interrupt").ready()
    expect(console.output.locator(".error b")).to_contain_text("KeyboardInterrupt")
    expect(console.output).not_to_contain_text("app.py")  # as without a page: the code, and not what interrupted it
    assert console.run("survivor") == "5\n"


def test_control_c_interrupts(console: Console) -> None:
    console.start(ENDLESS)
    console.wrote("begun")
    console.prompt.press("Control+c")
    console.ready()
    expect(console.output).to_contain_text("KeyboardInterrupt")


def test_code_that_awaits_is_interrupted(console: Console) -> None:
    console.start("import asyncio\nprint('begun')\nawait asyncio.sleep(1000)")
    console.wrote("begun")
    console.click("interrupt").ready()
    expect(console.output).to_contain_text("KeyboardInterrupt")
    assert console.run("6 * 7") == "42\n"


@pytest.mark.parametrize(
    "code",
    [
        "import time\nprint('begun')\nwhile True: time.sleep(0.5)",
        "import time\nprint('begun')\ntime.sleep(1000)",
        "import asyncio\nprint('begun')\nasyncio.run(asyncio.sleep(1000))",
    ],
)
def test_code_that_waits_is_interrupted(console: Console, code: str) -> None:
    console.start(code)
    console.wrote("begun")
    console.click("interrupt").ready()
    expect(console.output.locator(".error b")).to_have_text("KeyboardInterrupt\n")
    assert console.run("6 * 7") == "42\n"


def test_code_that_waits_is_interrupted_after_a_start_without_the_snapshot(first_visit: Console) -> None:
    first_visit.start("import time\nprint('begun')\ntime.sleep(1000)")
    first_visit.wrote("begun")
    first_visit.click("interrupt").ready()
    expect(first_visit.output.locator(".error b")).to_have_text("KeyboardInterrupt\n")


def test_sleep_is_that_of_python(console: Console) -> None:
    assert console.run("import time\nt = time.monotonic(); time.sleep(0.3); 0.3 <= time.monotonic() - t") == "True\n"
    assert "ValueError: sleep length must be non-negative" in console.run("time.sleep(-1)")
    assert "TypeError" in console.run("time.sleep('1')")
    fails = "async def fail(): raise LookupError('once')\n"
    code = f"{fails}try: asyncio.run(fail())\nexcept LookupError as error: print(error)\n"
    assert console.run(f"import asyncio\n{code}asyncio.run(asyncio.sleep(0, 'value'))") == "once\n'value'\n"


def test_cell_is_interrupted_while_it_begins(console: Console) -> None:
    click = "document.querySelector('[data-testid={}]').click()"
    for wait_ms in range(20):  # from before the worker receives the cell to after its first statement
        console.click("clear").prompt.fill("while True: pass")
        wait = f"await new Promise((resolve) => setTimeout(resolve, {wait_ms} / 4))"
        console.page.evaluate(f"async () => {{ {click.format('run')}; {wait}; {click.format('interrupt')} }}")
        console.ready()
        expect(console.output.locator(".error b")).to_contain_text("KeyboardInterrupt")
    assert console.run("6 * 7") == "42\n"


def test_interrupt_with_nothing_running(console: Console) -> None:
    expect(console.page.get_by_test_id("interrupt")).to_be_disabled()
    console.page.keyboard.press("Control+c")
    expect(console.status).to_have_text("Nothing is running.")
    assert console.run("1") == "1\n"


def test_cells_that_wait_run_in_order_or_are_dropped_by_an_interrupt(console: Console) -> None:
    console.start("import time; time.sleep(0.3)").start("'second'").start("'third'").ready()
    expect(console.output).to_contain_text(re.compile("'second'.*'third'", re.DOTALL))
    console.run("changed = False")
    console.start(ENDLESS).start("changed = True")
    console.wrote("begun")
    console.click("interrupt").ready()
    assert console.run("changed") == "False\n"


def test_lines_are_overwritten_as_in_a_terminal(console: Console) -> None:
    code = "for i in range(0, 101, 20):\n    print(f'\\r{i}% done', end='')\nprint('\\rAll')"
    assert console.run(code) == "All% done\n"
    code = "import sys\nfor i in (5, 10):\n    print(f'\\r{i}', end='', file=sys.stderr, flush=True)"
    assert console.run(code) == "10"
    expect(console.output.locator(".stderr")).to_have_text("10")


def test_terminal_colours_are_removed(console: Console) -> None:
    assert console.run("print('\\x1b[1;31mred\\x1b[0m')") == "red\n"


def test_long_output_is_shortened(console: Console) -> None:
    cell = console.run("for i in range(40_000): print(i)")
    assert cell.endswith("39998\n39999\n")
    assert len(cell) <= 110_000
    expect(console.output).to_contain_text("Earlier output is not shown.")
    assert "characters omitted" in console.run("'x' * 3_000_000")


def test_flood_of_output_is_interrupted(console: Console) -> None:
    console.start("while True:\n    print('flood')")
    console.wrote("flood")
    console.click("interrupt").ready()
    assert console.run("'dry'") == "'dry'\n"


def test_clear_leaves_a_running_cell_its_output(console: Console) -> None:
    console.start("import time\nprint('before')\nfor i in range(30):\n    print(i); time.sleep(0.03)\nprint('after')")
    expect(console.output).to_contain_text("before")
    console.click("clear").ready()
    expect(console.output).to_contain_text("after")
    expect(console.output).not_to_contain_text("before")


def test_output_is_copied_with_its_code(console: Console) -> None:
    console.run("2 + 2")
    console.click("copy")
    expect(console.status).to_have_text("The output was copied.")
    assert console.page.evaluate("navigator.clipboard.readText()") == ">>> 2 + 2\n4"


# ---- the prompt


def test_names_are_completed(console: Console) -> None:
    prompt = console.prompt
    offered = console.page.get_by_test_id("completions")
    prompt.fill("y = nn.functional.cross_en")
    prompt.press("Tab")
    expect(prompt).to_have_value("y = nn.functional.cross_entropy(")
    prompt.fill("F.soft")
    prompt.press("Tab")
    expect(offered).to_contain_text("softmax(")
    expect(offered).to_contain_text("softplus(")
    prompt.press_sequentially("ma")
    expect(offered).to_be_hidden()
    prompt.press("Tab")
    expect(prompt).to_have_value("F.softmax(")
    prompt.fill("no_such_name_")
    prompt.press("Tab")
    expect(prompt).to_have_value("no_such_name_")
    prompt.fill("if x:\n")
    prompt.press("Tab")
    expect(prompt).to_have_value("if x:\n    ")
    prompt.fill("")


def test_history_comes_back(console: Console) -> None:
    console.run("'first'")
    console.run("for i in range(2):\n    i")
    prompt = console.prompt
    prompt.fill("draft")
    prompt.press("ArrowUp")
    expect(prompt).to_have_value("for i in range(2):\n    i")
    prompt.press("ArrowUp")  # within the two lines
    prompt.press("ArrowUp")
    expect(prompt).to_have_value("'first'")
    for _ in range(2):
        prompt.press("ArrowDown")
    prompt.press("ArrowDown")
    expect(prompt).to_have_value("draft")


def test_keyboard_leaves_the_prompt(console: Console) -> None:
    console.prompt.focus()
    console.prompt.press("Shift+Tab")
    expect(console.prompt).not_to_be_focused()


# ---- examples and links


EXAMPLES = sorted(path.name for path in (paths.ROOT / "wasm_examples" / "console" / "examples").glob("*.py"))


def test_every_example_is_offered_and_runs(console: Console) -> None:
    examples = console.page.get_by_test_id("example")
    expect(examples).to_have_count(len(EXAMPLES))
    for example in examples.all():
        console.click("clear").prompt.fill("")
        example.click()
        expect(console.prompt).to_have_value(re.compile("^# "))
        expect(console.output).to_have_text("")
        console.click("run")
        expect(console.output.locator(".given")).to_have_count(1)
        console.ready()
        expect(console.output.locator(".written").filter(has_text=re.compile(r"\S"))).not_to_have_count(0)
        expect(console.output.locator(".error")).to_have_count(0)


CODE = "print('50% & #1 + “ü”')\nfor i in range(2):\n    i"


def test_link_is_copied_carries_code_and_runs_nothing(console: Console, site: str) -> None:
    console.prompt.fill(CODE)
    console.click("share")
    expect(console.status).to_contain_text("The link was copied")
    link = console.page.evaluate("navigator.clipboard.readText()")
    assert link.startswith(f"{site}{PAGE}#code=")
    other = console.page.context.new_page()
    other.goto(link)
    opened = Console(other)
    expect(opened.prompt).to_have_value(CODE)
    expect(opened.status).to_contain_text("Ready: tallow", timeout=START_MS)
    expect(opened.output).to_contain_text("came with the link")
    expect(opened.output.locator(".given")).to_have_count(0)
    other.close()


def test_damaged_link_shows_an_error(page: Page, site: str) -> None:
    page.goto(f"{site}{PAGE}#code=%E0%A4%A")
    expect(Console(page).error).to_contain_text("damaged")


# ---- without interrupts


def test_code_typed_during_start_runs_afterwards_and_is_ended_by_a_restart(page: Page, site: str) -> None:
    page.goto(site + PAGE)
    console = Console(page).start("gone = 40 + 2\ngone").ready()
    expect(console.output).to_contain_text("42")
    console.start("print('begun')\nwhile True:\n    try:\n        while True: pass\n    except KeyboardInterrupt: pass")
    console.wrote("begun")
    console.click("interrupt")
    page.get_by_role("button", name="Restart Python").click()
    expect(console.output).to_contain_text("its variables are gone")
    expect(console.status).to_contain_text("Ready: tallow", timeout=START_MS)
    assert "NameError" in console.run("gone")


def test_code_that_goes_on_after_an_interrupt_is_offered_a_restart(console: Console) -> None:
    """The page responds while Python sleeps, and is not restarted. The offer disappears when the code ends."""
    begin = "import time\nprint('begun')\nend = None\nwhile end is None or time.monotonic() < end:\n"
    console.start(f"{begin}    try: time.sleep(0.1)\n    except KeyboardInterrupt: end = time.monotonic() + 6")
    console.wrote("begun")
    console.click("interrupt")
    expect(console.error).to_contain_text("does not answer")
    console.ready()
    expect(console.error).to_be_hidden()


def test_page_that_is_not_isolated_interrupts_what_waits_and_offers_a_restart(page: Page, site: str) -> None:
    def without_isolation(route: Any) -> None:
        response = route.fetch()
        headers = {name: value for name, value in response.headers.items() if not name.startswith("cross-origin")}
        route.fulfill(response=response, headers=headers)

    page.add_init_script("sessionStorage.setItem('tallow-isolation-tried', 'yes')")
    page.route(f"{site}{PAGE}", without_isolation)
    console = Console(page).open(site)
    assert not page.evaluate("crossOriginIsolated")
    console.start("import time\nprint('begun')\nwhile True: time.sleep(0.5)")
    console.wrote("begun")
    console.click("interrupt").ready()
    expect(console.output).to_contain_text("KeyboardInterrupt")
    console.click("clear").start(ENDLESS)
    console.wrote("begun")
    console.click("interrupt")
    expect(console.error).to_contain_text("not cross-origin isolated")
    page.get_by_role("button", name="Restart Python").click()
    expect(console.output).to_contain_text("Python was restarted")
    expect(console.status).to_contain_text("Ready: tallow", timeout=START_MS)
    assert console.run("1 + 1") == "2\n"


def test_a_model_of_the_hub_in_one_line(console: Console, tmp_path: Path) -> None:
    save_tokenizer(tmp_path, CHATML, 300)
    files = {path.name: path.read_bytes() for path in tmp_path.glob("*.json")}
    files |= {name: (stories.FOLDER / name).read_bytes() for name in ("config.json", "model.safetensors")}
    hub = Hub(stories=files, torn=files)
    console.page.context.route("https://huggingface.co/**", hub)
    try:
        console.run(
            "from tallow.models import AutoModel\n"
            "def size(name): return sum(p.numel() for p in AutoModel.from_pretrained(name).parameters())"
        )
        output = console.run("size('who/stories')")
        assert "model.safetensors: 1.1 of 1.1 MB\n" in output
        assert output.endswith("541536\n")
        assert "541536" in console.run("size('who/stories')")  # kept
        ids = Tokenizer.from_pretrained(tmp_path).encode("hello, cat")
        console.run("lm = AutoModel.from_pretrained('who/stories')")
        assert f"{ids}\n" in console.run("print(lm.tokenizer.encode('hello, cat'))")
        assert "no folder and no Hub repository who/none" in console.run("size('who/none')")
        hub.served["model.safetensors"] = b"<!doctype html><title>Too many requests</title>"
        assert "model.safetensors has 47 bytes, not" in console.run("size('who/torn')")
    finally:
        console.page.context.unroute("https://huggingface.co/**")


def test_a_gguf_file_of_the_hub_in_one_line(
    console: Console, tmp_path: Path, model: Path, tokenizer: Path, data_dir: Path
) -> None:
    write_llama2c(model, tokenizer, tmp_path / "tiny.gguf")
    case = json.loads((data_dir / "llama2c_reference.json").read_text())["cases"][1]
    hub = Hub(tiny={"tiny-F32.gguf": (tmp_path / "tiny.gguf").read_bytes()})
    console.page.context.route("https://huggingface.co/**", hub)
    try:
        console.run("from tallow.models import AutoModel\nlm = AutoModel.from_pretrained('who/tiny:tiny-F32.gguf')")
        prompt = case["prompt"]
        output = console.run(f"print({prompt!r} + ''.join(lm.generate_text({prompt!r}, max_tokens=40)))")
        assert output.strip()
        assert case["text"].startswith(output.rstrip("\n"))
        assert "has no file other.gguf" in console.run("AutoModel.from_pretrained('who/tiny:other.gguf')")
    finally:
        console.page.context.unroute("https://huggingface.co/**")


def test_browser_that_cannot_suspend_python_interrupts_what_sleeps(page: Page, site: str) -> None:
    """Safari has no JSPI; an interrupt cancels queued cells there as everywhere."""

    def without_jspi(route: Any) -> None:
        response = route.fetch()
        script = "delete WebAssembly.Suspending; delete WebAssembly.promising; delete WebAssembly.Suspender;\n"
        route.fulfill(response=response, body=script + response.text())

    page.route("**/web/worker.js", without_jspi)
    page.goto(site + PAGE)
    console = Console(page).start("dropped = 1").click("interrupt")
    expect(console.status).to_contain_text("Ready: tallow", timeout=START_MS)
    assert "NameError" in console.run("dropped")
    assert console.run("from pyodide.ffi import can_run_sync\ncan_run_sync()") == "False\n"
    console.start("import time\nprint('begun')\nwhile True: time.sleep(1000)")
    console.wrote("begun")
    console.click("interrupt").ready()
    expect(console.output).to_contain_text("KeyboardInterrupt")


def test_page_without_python_shows_an_error(page: Page, site: str) -> None:
    page.route("**/pyodide.mjs", lambda route: route.abort())
    page.goto(site + PAGE)
    expect(Console(page).error).to_contain_text("Python could not be loaded", timeout=START_MS)
    expect(page.get_by_role("button", name="Try again")).to_be_visible()


def test_phone_needs_no_sideways_scroll(console: Console) -> None:
    page, before = console.page, console.page.viewport_size
    page.set_viewport_size({"width": 360, "height": 740})
    console.run("print('x' * 500)")
    schemes: tuple[Literal["light", "dark"], ...] = ("light", "dark")
    for scheme in schemes:
        page.emulate_media(color_scheme=scheme)
        assert page.evaluate("document.documentElement.scrollWidth") == 360
    assert before
    page.set_viewport_size(before)
