"""A page object for wasm_examples/console."""

from __future__ import annotations

from playwright.sync_api import Page, expect
from tests.browser.conftest import START_MS

PAGE = "wasm_examples/console/"
ENDLESS = "print('begun')\nwhile True:\n    pass"


class Console:
    """A page object: what a user does and sees."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.prompt = page.get_by_test_id("prompt")
        self.output = page.get_by_test_id("output")
        self.status = page.get_by_test_id("status")
        self.error = page.get_by_test_id("error")
        self.written = self.output.locator(".written")

    def open(self, site: str, fragment: str = "") -> Console:
        self.page.goto(f"{site}{PAGE}{fragment}")
        expect(self.status).to_contain_text("Ready: tallow", timeout=START_MS)
        return self

    def start(self, code: str) -> Console:
        self.prompt.fill(code)
        self.page.get_by_test_id("run").click()
        return self

    def wrote(self, text: str) -> Console:
        """Wait for output. The whole box also has the cell's code, which is shown before Python runs it."""
        expect(self.written.filter(has_text=text)).not_to_have_count(0)
        return self

    def ready(self) -> Console:
        expect(self.status).to_have_text("Ready.", timeout=START_MS)
        return self

    def run(self, code: str) -> str:
        """Return the output of a cell below its code."""
        self.page.get_by_test_id("clear").click()
        self.page.evaluate("document.getElementById('status').textContent = ''")  # it is ready from before
        self.start(code)
        expect(self.output).not_to_have_text("")  # with the code, or the rest of it after much output
        self.ready()
        return "".join(self.written.all_text_contents())

    def click(self, button: str) -> Console:
        self.page.get_by_test_id(button).click()
        return self
