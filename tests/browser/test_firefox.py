"""The pages in a second engine: what each is for, from the start to a visit without the server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.browser.firefox import Firefox, running
from tests.browser.plain_host import PlainHost, serving_plainly

KERNELS_AGREE = """
from tallow import kernels
import tallow.nn.functional as F
tl.manual_seed(0)
x, w, images, heads = tl.randn(300, 400), tl.randn(400, 256), tl.randn(2, 8, 40, 40), tl.randn(2, 4, 100, 32)
computations = {
    "matmul": lambda: x @ w,
    "softmax": lambda: tl.softmax(x, dim=-1),
    "layer_norm": lambda: F.layer_norm(x, (400,)),
    "gelu": lambda: F.gelu(x),
    "attention": lambda: F.scaled_dot_product_attention(heads, heads, heads),
    "conv2d": lambda: F.conv2d(images, tl.ones(8, 8, 3, 3)),
    "max_pool2d": lambda: F.max_pool2d(images, 2),
}
def differs(compute):
    with kernels.off():
        expected = compute()
    return not tl.allclose(compute(), expected, rtol=2e-5, atol=2e-5 * expected.abs().max().item())

print("differ:", [name for name, compute in computations.items() if differs(compute)], "by", kernels.info().library)
"""


@pytest.fixture(scope="module")
def host(site_dir: Path) -> Iterator[PlainHost]:
    """A host that sends no headers: the service worker isolates the pages."""
    with serving_plainly(site_dir) as host:
        yield host


@pytest.fixture(scope="module")
def browser_window(firefox: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Firefox]:
    with running(firefox, tmp_path_factory.mktemp("profile")) as window:
        yield window


def tell(window: Firefox) -> None:
    window.click("tell")
    window.says("measured", "times NumPy in this tab")


def write_a_story(window: Firefox) -> None:
    window.fill("steps", "30")
    window.click("generate")
    window.says("status", "Done.")
    window.says("output", "Once upon a time")
    window.fill("steps", "500")
    window.click_when("stop", "document.querySelector('#output').textContent.length > 30")
    window.click("generate")
    window.says("status", "Stopped.")


def transcribe(window: Firefox) -> None:
    window.evaluate("document.querySelector('#samples button').click()")
    window.says("status", "Done.")
    window.until("document.querySelector('#transcript').textContent.trim()")


def run_cells(window: Firefox) -> None:
    """Compare the kernels with the code for arrays, and interrupt a cell."""
    window.fill("prompt", KERNELS_AGREE)
    window.click("run")
    window.says("output", "differ: [] by wasm relaxed-simd")
    window.fill("prompt", "while True: pass")
    window.click("run")
    window.says("status", "Running.")
    window.click("interrupt")
    window.says("output", "KeyboardInterrupt")


# For each page: where it says that it is ready, with which words, and what a user does there.
# The other pages start and stop Python by the same modules: test_stopped.py.
PAGES: dict[str, tuple[str, str, Callable[[Firefox], None]]] = {
    "front": ("tell", "Tell", tell),
    "llama2c": ("status", "Ready.", write_a_story),
    "whisper": ("status", "Ready.", transcribe),
    "console": ("status", "Ready: tallow", run_cells),
}


OFFLINE = ("front", "llama2c", "console")


def open_page(window: Firefox, host: PlainHost, name: str) -> None:
    """Open a page, which the service worker reloads at the first visit, and wait until it is ready."""
    window.open(host.url if name == "front" else f"{host.url}wasm_examples/{name}/")
    window.until("crossOriginIsolated && !!navigator.serviceWorker.controller && document.readyState === 'complete'")
    element, words, _ = PAGES[name]
    window.says(element, words)


@pytest.mark.parametrize("name", PAGES)
def test_page_starts_computes_stops_and_starts_again(browser_window: Firefox, host: PlainHost, name: str) -> None:
    element, words, use = PAGES[name]
    open_page(browser_window, host, name)
    use(browser_window)
    browser_window.reload()
    assert browser_window.evaluate("crossOriginIsolated")
    browser_window.says(element, words)


@pytest.mark.parametrize("name", OFFLINE)
def test_page_works_without_its_server(browser_window: Firefox, host: PlainHost, name: str) -> None:
    """After the tests above, which have opened each page."""
    host.stop()
    open_page(browser_window, host, name)
    PAGES[name][2](browser_window)
