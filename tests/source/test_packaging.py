"""The wheels contain what users need, and nothing else."""

from __future__ import annotations

import os
import platform
import struct
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from collections.abc import Mapping, Sequence
from email import message_from_bytes
from email.message import Message
from pathlib import Path

import packaging.tags
import pytest
from support.paths import ROOT

import tallow
from tallow.site.browser_wheel import SiteError, pack_wheel

MAX_BYTES = 4.27 * 2**20  # 10% are models, 7% Keras, 6% the names of transformers, 5% ONNX, 15% compiled kernels
# The models, one of which is of a page, and the recordings that the speech page plays to its model.
MAX_MODEL_BYTES = {
    "tallow/models/built_in/emoji/": 1_000_000,
    "tallow/models/built_in/glosses/": 1_500_000,
    "tallow/models/built_in/stories/": 2_000_000,
    "tallow/models/built_in/spoken/": 3_000_000,
    "wasm_examples/find/model/": 600_000,
    "wasm_examples/whisper/samples/": 250_000,
}
PAGES = "tallow/_site.tar.xz"
WEIGHTS = ("model.safetensors", "config.json", "README.md")
WASM = {"tallow/kernels/lib/tallow-wasm-simd128.wasm", "tallow/kernels/lib/tallow-wasm-relaxed-simd.wasm"}


def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def dist_info(wheel: Path, file: str) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(f".dist-info/{file}"))
        return message_from_bytes(archive.read(name))


def kernels(wheel: Path) -> set[str]:
    return {name for name in names(wheel) if name.startswith("tallow/kernels/lib/")}


@pytest.fixture(params=["pure_wheel", "platform_wheel"])
def wheel(request: pytest.FixtureRequest) -> Path:
    return request.getfixturevalue(request.param)


def packed_bytes(wheel: Path, folder: str) -> int:
    """Return the bytes of a folder of the wheel, or of the archive of pages in it, whose recordings are compressed."""
    with zipfile.ZipFile(wheel) as archive, archive.open(PAGES) as inner, tarfile.open(fileobj=inner) as pages:
        sizes = [(info.filename, info.compress_size) for info in archive.infolist()]
        sizes += [(info.name, info.size) for info in pages]
        return sum(size for name, size in sizes if name.startswith(folder))


def test_wheel_stays_small_but_for_the_models_in_it(wheel: Path) -> None:
    models = {folder: packed_bytes(wheel, folder) for folder in MAX_MODEL_BYTES}
    assert all(size <= MAX_MODEL_BYTES[folder] for folder, size in models.items())
    assert wheel.stat().st_size - sum(models.values()) <= MAX_BYTES


def test_wheel_holds_the_models(wheel: Path) -> None:
    vocabularies = ("stories/tokenizer.bin", "spoken/vocab.json", "emoji/index.safetensors", "emoji/LICENSE-UNICODE")
    encoder = ("model.safetensors", "modules.json", "tokenizer.json", "README.md", "LICENSE-WORDNET")
    files = (f"{model}/{file}" for model in ("stories", "spoken", "emoji") for file in WEIGHTS)
    expected = (*files, *vocabularies, *(f"glosses/{file}" for file in encoder))
    assert {f"tallow/models/built_in/{file}" for file in expected} <= names(wheel)


def test_pure_wheel_runs_anywhere(pure_wheel: Path) -> None:
    assert pure_wheel.name.endswith("-py3-none-any.whl")
    assert kernels(pure_wheel) == WASM


def test_platform_wheel_has_native_kernels(platform_wheel: Path) -> None:
    machine = platform.machine()
    native = kernels(platform_wheel) - WASM
    assert kernels(platform_wheel) > WASM
    assert all({"arm64": "aarch64"}.get(machine, machine).replace("_", "-") in name for name in native)
    tags = dist_info(platform_wheel, "WHEEL").get_all("Tag", [])
    assert tags
    assert all(tag.startswith("py3-none-") and tag.endswith(machine) for tag in tags)


@pytest.mark.parametrize(
    ("of_python", "machine", "tag"),
    [
        ("linux-x86_64", "x86_64", "manylinux_2_17_x86_64.musllinux_1_1_x86_64"),
        ("linux-aarch64", "aarch64", "manylinux_2_17_aarch64.musllinux_1_1_aarch64"),
        ("macosx-10.13-universal2", "arm64", "macosx_11_0_arm64"),
        ("macosx-10.13-universal2", "x86_64", "macosx_11_0_x86_64"),
        ("macosx-15.0-arm64", "arm64", "macosx_11_0_arm64"),
        ("win-amd64", "AMD64", "win_amd64"),
    ],
)
def test_tag_names_the_processor_that_the_kernels_are_for(
    of_python: str, machine: str, tag: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pip accepts a single-architecture wheel also on a universal2 Python (PEP 425, `packaging.tags`)."""
    monkeypatch.syspath_prepend(ROOT)
    import build_kernels
    import hatch_build

    monkeypatch.setattr(sysconfig, "get_platform", lambda: of_python)
    monkeypatch.setattr(platform, "machine", lambda: machine)
    assert hatch_build.platform_tag(build_kernels.MACOS) == tag
    if machine == "arm64":
        accepted = {str(each) for each in packaging.tags.mac_platforms((15, 0), machine)}
        assert tag in accepted


@pytest.mark.parametrize("machine", ["arm64", "x86_64"])
def test_libraries_for_macos_run_on_what_the_tag_says(
    machine: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Cross-compiled: the load command LC_BUILD_VERSION of each library names macOS 11.0."""
    monkeypatch.syspath_prepend(ROOT)
    import build_kernels

    (tmp_path / "sources").mkdir()
    for sources in ("PRODUCTS", "DOTS"):
        monkeypatch.setattr(build_kernels, sources, ("*.c",))
    (tmp_path / "sources" / "one.c").write_text('__attribute__((visibility("default"))) int one(void) { return 1; }\n')
    monkeypatch.setattr(build_kernels, "SOURCES", tmp_path / "sources")
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    monkeypatch.setattr(platform, "machine", lambda: machine)
    for path in build_kernels.build(tmp_path / "libraries", ["native"]):
        assert oldest_macos(path.read_bytes()) == (11, 0)


def oldest_macos(library: bytes) -> tuple[int, int]:
    """Return `minos` of a 64-bit Mach-O file (mach-o/loader.h, build_version_command)."""
    (commands,) = struct.unpack_from("<I", library, 16)
    at = 32
    for _ in range(commands):
        command, size = struct.unpack_from("<II", library, at)
        if command == 0x32:
            (version,) = struct.unpack_from("<I", library, at + 12)
            return version >> 16, version >> 8 & 0xFF
        at += size
    raise AssertionError("no LC_BUILD_VERSION")


def test_native_kernels_need_no_library(platform_wheel: Path, tmp_path: Path) -> None:
    """The tag promises any Linux, so a kernel library must not depend on a libc."""
    if sys.platform != "linux":
        pytest.skip("ELF files are Linux's")
    with zipfile.ZipFile(platform_wheel) as archive:
        for name in kernels(platform_wheel) - WASM:
            assert b"libc." not in archive.read(name)


def test_wheel_holds_each_source_and_page(wheel: Path) -> None:
    files = names(wheel)
    folders = (ROOT / "package", ROOT / "native_gpu")
    assert {p.relative_to(folder).as_posix() for folder in folders for p in folder.rglob("*.py")} <= files
    assert {"tallow/py.typed", "tallow_cuda/py.typed"} <= files
    pages = [*filter(Path.is_file, ROOT.rglob("web/**/*")), *ROOT.glob("wasm_examples/*/*.*")]
    pages += ROOT.glob("wasm_examples/*/examples/*")
    with zipfile.ZipFile(wheel) as archive, archive.open(PAGES) as inner, tarfile.open(fileobj=inner) as packed:
        files |= {*packed.getnames()}
    assert {page.relative_to(ROOT).as_posix() for page in pages} <= files
    assert not [n for n in files if n.startswith("tests") or "__pycache__" in n or n.endswith((".c", ".h"))]


def test_metadata(wheel: Path) -> None:
    metadata = dist_info(wheel, "METADATA")
    assert metadata["Version"] == tallow.__version__
    assert metadata["License-Expression"] == "MIT OR Apache-2.0"
    assert metadata.get_all("License-File") == ["LICENSE-APACHE", "LICENSE-MIT"]
    assert metadata["Requires-Python"] == ">=3.11"
    extras = {"audio", "cuda12", "cuda13", "data", "docs", "hub", "image", "keras", "media", "mpi", "plot"}
    extras |= {"all", "completion", "serve", "tensorboard", "test", "text", "threads", "train"}
    assert set(metadata.get_all("Provides-Extra", [])) == extras
    required = [line.split(";")[0].strip() for line in metadata.get_all("Requires-Dist", []) if "extra ==" not in line]
    assert required == ["numpy>=2.1"]


def test_a_wheel_of_another_kind_is_refused(tmp_path: Path) -> None:
    process = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path],
        cwd=ROOT,
        env=os.environ | {"TALLOW_WHEEL": "universal"},
        capture_output=True,
        text=True,
    )
    assert process.returncode != 0
    assert "TALLOW_WHEEL='universal'; it is one of: pure, platform" in process.stderr
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def installed(platform_wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel as a user does, outside the checkout, with dependencies from this environment."""
    site = tmp_path_factory.mktemp("installed")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", site]
    subprocess.run([*pip, platform_wheel], check=True)
    return site


def test_installed_wheel_computes_and_has_its_command(installed: Path, tmp_path: Path) -> None:
    site = installed
    code = "import tallow, sys; x = tallow.tensor([1.0, 2.0]); print((x * x).sum().item(), tallow.__file__)"
    env = {**os.environ, "PYTHONPATH": str(site), "PYTHONSAFEPATH": "1"}
    value, file = output_of([sys.executable, "-c", code], env, tmp_path).split()
    assert float(value) == 5.0
    assert Path(file).is_relative_to(site)
    assert tallow.__version__ in output_of([site / "bin" / "tallow", "--version"], env, tmp_path)


@pytest.fixture(scope="module")
def for_pages(pure_wheel: Path) -> set[str]:
    """Return the files of a release that a page needs: all except the pages and the command."""
    others = (PAGES, "tallow_command/")
    return {n for n in names(pure_wheel) if not n.startswith(others) and not n.endswith("entry_points.txt")}


@pytest.mark.parametrize("source", ["pure_wheel", "platform_wheel", None])
def test_pages_install_the_same_files_from_each_source(
    source: str | None, for_pages: set[str], request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """The site's builder packs them from a wheel, `tallow demo` from the running checkout."""
    wheel_path = pack_wheel(tmp_path, source and request.getfixturevalue(source))
    assert names(wheel_path) == for_pages
    assert {"tallow_cuda/__init__.py", "tallow/models/built_in/stories/model.safetensors", *WASM} <= for_pages
    with zipfile.ZipFile(wheel_path) as archive:
        assert archive.testzip() is None
        *packed, _, _ = archive.namelist()  # WHEEL and RECORD are last
    assert packed == sorted(packed)  # so it is the same wheel, of which sites keep the bytecode and the snapshot


def test_pages_install_the_same_files_from_an_installed_package(
    for_pages: set[str], installed: Path, tmp_path: Path
) -> None:
    """`tallow demo` packs them after `pip install`, from installed files."""
    code = "from pathlib import Path; from tallow.site.browser_wheel import pack_wheel; print(pack_wheel(Path()))"
    env = {**os.environ, "PYTHONPATH": str(installed), "PYTHONSAFEPATH": "1"}
    wheel_path = tmp_path / output_of([sys.executable, "-c", code], env, tmp_path).strip()
    assert names(wheel_path) == for_pages


@pytest.mark.parametrize("content", [b"", b"no wheel", None])
def test_pages_only_install_tallow_wheels(content: bytes | None, tmp_path: Path) -> None:
    source = tmp_path / "x.whl"
    if content is None:
        with zipfile.ZipFile(source, "w") as archive:
            archive.writestr("other/__init__.py", "")
    else:
        source.write_bytes(content)
    with pytest.raises(SiteError, match=r"x\.whl"):
        pack_wheel(tmp_path, source)
    assert list(tmp_path.iterdir()) == [source]


def output_of(command: Sequence[str | Path], env: Mapping[str, str], cwd: Path) -> str:
    return subprocess.run(command, env=env, cwd=cwd, capture_output=True, text=True, check=True).stdout
