"""Fixtures and settings for all tests: Hypothesis, real data, marks, and artifacts that are built once per run.

Pyodide loads this file too, so importing it needs only pytest and hypothesis.
"""

from __future__ import annotations

import gc
import sys
import zlib
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest
from support import builds, paths
from support.subsuite import AccountFor, Outcome, describe_failures

if TYPE_CHECKING:
    from spoken.espeak import Espeak
    from xdist.remote import Producer
    from xdist.scheduler import Scheduling

IN_PYODIDE = sys.platform == "emscripten"

# A deadline would make results depend on the machine; derandomized, a failure repeats in the next run. Pyodide, five
# times as slow, repeats some of the examples that run natively.
EXAMPLES = 20 if IN_PYODIDE else 100
hypothesis.settings.register_profile("tallow", deadline=None, derandomize=True, max_examples=EXAMPLES)
hypothesis.settings.load_profile("tallow")

SUBSUITE = "subsuite"  # report property that names the outcome of a subsuite


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--device", choices=("cpu", "cuda", "like-cuda"), default="cpu", help="where tensors are made")
    parser.addoption("--general", action="store_true", help="apply all ops the general way, see tallow.core.short_way")
    parser.addoption("--compiled", action="store_true", help="run each op from a plan of tl.compile")
    parser.addoption("--ecosystem", action="store_true", help="run all packages of tests/compat, in place of a few")
    parser.addoption("--sample", type=int, metavar="N", help="run one case in N of each file")
    parser.addoption(
        "--fuzz-seconds", type=float, metavar="N", help="read damaged files for N seconds a reader, in place of a few"
    )


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput"):
        from support.by_file import send_less

        send_less(config)
    if config.getoption("--general"):
        from tallow.core.short_way import use_general_way

        use_general_way()
    if config.getoption("--compiled"):
        from support.compiled_plugin import CompiledPlugin

        config.pluginmanager.register(CompiledPlugin())
    if (device := config.getoption("--device")) != "cpu":
        from support.device_plugin import DevicePlugin

        config.pluginmanager.register(DevicePlugin(device))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if every := config.getoption("--sample"):
        sample(config, items, every)
    items.sort(key=lambda item: item.get_closest_marker("early") is None)
    if IN_PYODIDE:
        for item in items:
            needs_threads = item.get_closest_marker("threads") and not has_threads()
            if item.get_closest_marker("native") or needs_threads:
                item.add_marker(pytest.mark.skip(reason="needs processes, threads or the checkout"))


def has_threads() -> bool:
    """Return whether kernels may use several threads."""
    from tallow.kernels import threads

    return threads.most_threads() > 1


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect no garbage while tests are found: tens of thousands, and what they import, live until the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        exempt_from_garbage_collection()


def exempt_from_garbage_collection() -> None:
    """Exempt what lives now from garbage collection, which takes seconds if it looks at all of a long run."""
    if not IN_PYODIDE:  # Hypothesis asks the collector for referrers of NumPy's random generator
        gc.collect()
        gc.freeze()


def sample(config: pytest.Config, items: list[pytest.Item], every: int) -> None:
    """Keep one in `every` tests of each file, at least one: those with the smallest checksums of their names."""
    of_file: dict[Path, list[pytest.Item]] = {}
    for item in items:
        of_file.setdefault(item.path, []).append(item)
    selected: set[pytest.Item] = set()
    for cases in of_file.values():
        by_checksum = sorted(cases, key=lambda item: zlib.crc32(item.nodeid.encode()))
        selected.update(by_checksum[: -(-len(cases) // every)])
    config.hook.pytest_deselected(items=[item for item in items if item not in selected])
    items[:] = [item for item in items if item in selected]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Scheduling | None:
    if config.getoption("dist") != "loadfile":
        return None
    from support.by_file import ByFile

    return ByFile(config, log)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = (report for outcome in ("passed", "failed") for report in terminalreporter.getreports(outcome))
    for name, text in (entry for report in reports for entry in report.user_properties):
        if name == SUBSUITE:
            terminalreporter.write_line(text)


@pytest.fixture(scope="module", autouse=True)
def no_process_group_is_left() -> Iterator[None]:
    """Fail in the file that leaves a process group: later files would believe that mpiexec started them."""
    yield
    groups = sys.modules.get("tallow.distributed.groups")
    assert groups is None or not groups.is_initialized()


@pytest.fixture(scope="module", autouse=True)
def garbage_of_a_file_is_collected_once() -> Iterator[None]:
    yield
    exempt_from_garbage_collection()


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Return the folder of real checkpoints and reference outputs. Skip the test if it is absent."""
    folder = paths.data_dir()
    if not folder.is_dir():
        pytest.skip(f"no real data at {folder}; set TALLOW_TEST_DATA")
    return folder


@pytest.fixture
def account_for(request: pytest.FixtureRequest) -> AccountFor:
    """Return a function that reports a subsuite's counts at the end of the run and fails if the subsuite failed.

    It also fails on skips, except for the reasons in `skips` up to their share of all tests.
    """

    def account(name: str, outcome: Outcome, skips: Mapping[str, float] | None = None) -> None:
        request.node.user_properties.append((SUBSUITE, f"unit tests {name}: {outcome}"))
        if outcome.failures:
            pytest.fail(f"{outcome}\n\n{describe_failures(outcome)}", pytrace=False)
        if unexpected := outcome.unexpected_skips(skips or {}):
            pytest.fail("\n".join(unexpected), pytrace=False)

    return account


@pytest.fixture(scope="session")
def pure_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the py3-none-any wheel of this checkout."""
    (path,) = builds.once(tmp_path_factory, "pure_wheel", partial(builds.wheel, "pure")).glob("*.whl")
    return path


@pytest.fixture(scope="session")
def platform_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel of this checkout for the running platform."""
    (path,) = builds.once(tmp_path_factory, "platform_wheel", partial(builds.wheel, "platform")).glob("*.whl")
    return path


@pytest.fixture(scope="session")
def built_site(
    tmp_path_factory: pytest.TempPathFactory,
    pure_wheel: Path,
    pyodide_dir: Path,
    tokenizers_dir: Path,
    markdown_dir: Path,
) -> Path:
    """Build the static site with Pyodide. Other processes of the run use the same files: do not change them."""
    from tallow.site.build import build_site  # Pyodide needs no sites

    def build(folder: Path) -> None:
        libraries = {"tokenizers": tokenizers_dir, "markdown": markdown_dir}
        assert build_site(folder, wheel=pure_wheel, pyodide=pyodide_dir, **libraries), "no bytecode"

    return builds.once(tmp_path_factory, "site", build)


@pytest.fixture(scope="session")
def docs_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the documentation of a site. Other processes of the run use the same files: do not change them."""
    pytest.importorskip("mkdocs")
    build = lambda folder: builds.docs(folder / "docs", "--site", "../")  # noqa: E731
    return builds.once(tmp_path_factory, "docs", build) / "docs"


@pytest.fixture(scope="session")
def pyodide_dir() -> Path:
    """Return a local copy of Pyodide."""
    return builds.pyodide()


@pytest.fixture(scope="session")
def wheels_dir() -> Path:
    """Return the folder with the wheels of such packages for a tab, which scripts/test downloads."""
    import fetch_packages  # scripts/ is missing inside Pyodide

    folder = fetch_packages.wheels_place()
    if not folder.is_dir():
        pytest.skip("the wheels are not downloaded: run scripts/test, or scripts/fetch_packages.py --wheels")
    return folder


@pytest.fixture(scope="session")
def tokenizers_dir() -> Path:
    """Return a local copy of the tokenizers library for pages."""
    return builds.tokenizers()


@pytest.fixture(scope="session")
def markdown_dir() -> Path:
    """Return a local copy of the Markdown libraries for pages."""
    return builds.markdown()


@pytest.fixture(scope="session")
def axe_dir() -> Path:
    """Return a local copy of axe-core, which checks accessibility."""
    return builds.axe()


# ---- programs that pip does not install: scripts/prerequisites.py finds these fixtures by name


@pytest.fixture(scope="session")
def chromium() -> str:
    """Return the path of a browser."""
    import prerequisites  # scripts/ is missing inside Pyodide

    path = prerequisites.chromium()
    if path is None:
        pytest.fail("no Chromium and no Google Chrome is installed; scripts/test installs one", pytrace=False)
    return path


@pytest.fixture(scope="session")
def firefox() -> str:
    """Return the path of Firefox."""
    import prerequisites

    path = prerequisites.firefox()
    if path is None:
        pytest.skip("Firefox is not installed; scripts/test installs Debian's")
    return path


@pytest.fixture(scope="session")
def node() -> str:
    """Return the path of Node."""
    import prerequisites

    path = prerequisites.node()
    if path is None:
        pytest.fail(f"no Node >= {prerequisites.NODE_MAJOR} is installed; scripts/test installs one", pytrace=False)
    return path


@pytest.fixture(scope="session")
def emoji() -> None:
    """Skip without a font of emoji in colours."""
    import prerequisites

    if not prerequisites.PRESENT["emoji"]():
        pytest.skip("Noto Color Emoji is not installed; scripts/test installs it")


@pytest.fixture(scope="session")
def espeak() -> Espeak:
    """Return the voices of eSpeak NG."""
    import prerequisites
    from spoken.espeak import Espeak

    if not prerequisites.PRESENT["espeak"]():
        pytest.skip("eSpeak NG is not installed; scripts/test installs it")
    return Espeak()
