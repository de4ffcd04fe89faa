"""Build the kernels for x86-64 with Clang's sanitizers, and run their tests and random calls with them.

    scripts/check sanitize                       address and undefined behaviour, then data races
    scripts/check sanitize address               one of them: address, thread
    scripts/check sanitize address x86-64-v3     with one library

Each library that this processor can load is built from the sources of `build_kernels.py`, into a temporary folder. With
`address`, AddressSanitizer and UndefinedBehaviorSanitizer watch the tests of the kernels, and 5,000 random calls whose
arrays lie between pages without access; with `thread`, ThreadSanitizer watches the tests. All reports are printed.
Needs Clang 19 or later and its runtime: apt-get install clang-19 libclang-rt-19-dev.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import build_kernels  # noqa: E402
from kernel_tests import LAST_CALL  # noqa: E402

OLDEST_CLANG = 19  # has the vector builtins that the sources use, as the compiler of the libraries
# -fsanitize, and the name of its runtime.
SANITIZERS = {"address": ("address,undefined", "asan"), "thread": ("thread", "tsan")}
# In place of the optimisation and the lack of debug information of the libraries.
FLAGS = ("-O1", "-g", "-Wno-psabi")
REPLACED = {"-O3", "-g0", "-fno-unwind-tables", "-fno-asynchronous-unwind-tables"}
KIND = re.compile(r"\S*: runtime error: .*|ERROR: \w+Sanitizer.*|WARNING: \w+Sanitizer.*")
LIBRARIES = build_kernels.variants("native")  # the least that a processor has first
FAILED = 1


def main() -> int:
    """Build and run each sanitizer that the command line names; return 1 if one finds anything."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("sanitizer", nargs="?", choices=SANITIZERS, help="default: both")
    parser.add_argument("library", nargs="?", choices=[*map(name_of, LIBRARIES)], help="default: each that loads")
    arguments = parser.parse_args()
    if platform.machine() not in ("x86_64", "AMD64") or sys.platform != "linux":
        parser.error("needs Linux on x86-64")
    clang = find_clang()
    if clang is None:
        parser.error(f"needs Clang {OLDEST_CLANG} or later: apt-get install clang-19 libclang-rt-19-dev")
    names = [arguments.sanitizer] if arguments.sanitizer else [*SANITIZERS]
    return max(check(clang, name, arguments.library) for name in names)


def find_clang() -> str | None:
    """Return the newest Clang on PATH that can build the sources."""
    for version in range(OLDEST_CLANG + 12, OLDEST_CLANG - 1, -1):
        if found := shutil.which(f"clang-{version}"):
            return found
    found = shutil.which("clang")
    version = subprocess.run([found, "-dumpversion"], capture_output=True, text=True).stdout if found else "0"
    return found if int(version.partition(".")[0]) >= OLDEST_CLANG else None


def name_of(variant: build_kernels.Variant) -> str:
    """Return the name of a library as in `kernels.info()`, such as x86-64-v3."""
    return Path(variant.file).stem.removeprefix("tallow-")


def check(clang: str, sanitizer: str, library: str | None) -> int:
    """Build the libraries with a sanitizer, and run what it watches with each or one; return 1 if it finds anything."""
    wanted = [variant for variant in LIBRARIES[: loadable()] if library in (None, name_of(variant))]
    if not wanted:
        sys.exit(f"sanitize: this processor does not load {library}")
    failed = 0
    with tempfile.TemporaryDirectory() as made:
        files = build(clang, sanitizer, LIBRARIES[: LIBRARIES.index(wanted[-1]) + 1], Path(made))
        for variant in wanted:
            folder = Path(made, name_of(variant))
            folder.mkdir()
            for file in files[: LIBRARIES.index(variant) + 1]:  # the loader takes the best of those that exist
                shutil.copy(file, folder)
            for what in ("tests", "calls") if sanitizer == "address" else ("tests",):
                print(f"{sanitizer}: {what} with {name_of(variant)}", flush=True)
                failed |= watched(clang, sanitizer, what, folder)
    return failed


def build(clang: str, sanitizer: str, variants: Sequence[build_kernels.Variant], out: Path) -> list[Path]:
    """Compile and link libraries with a sanitizer, and return their files."""
    names = SANITIZERS[sanitizer][0]
    # Functions are called by their words, which every type has (on_arrays.c).
    instrument = ("-fsanitize=" + names, "-fno-sanitize=function", "-fno-omit-frame-pointer")
    usual = [flag for flag in build_kernels.FLAGS if flag not in REPLACED]
    define = f"-DTALLOW_SOURCES={build_kernels.checksum()}u"
    made = []
    for variant in variants:
        cpu = next(flag for flag in variant.compile if flag.startswith("-mcpu=")).removeprefix("-mcpu=")
        level, *features = cpu.split("+")
        machine = (f"-march={level.replace('_', '-')}", *(f"-m{feature}" for feature in features))
        objects = out / variant.file.replace(".", "-")
        objects.mkdir()
        sources = [source for pattern in variant.sources for source in sorted(build_kernels.SOURCES.rglob(pattern))]

        def compiled(source: Path, objects: Path = objects, machine: Sequence[str] = machine) -> Path:
            to = objects / f"{source.stem}.o"
            subprocess.run([clang, *usual, *FLAGS, define, *machine, *instrument, "-c", source, "-o", to], check=True)
            return to

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            parts = list(pool.map(compiled, sources))
        made.append(out / variant.file)
        subprocess.run([clang, "-shared", "-shared-libsan", *instrument, *parts, "-o", made[-1]], check=True)
    return made


def loadable() -> int:
    """Return how many of the libraries for x86-64 this processor loads.

    One, those of levels 3 and 4, that of AVX512-BF16, or all with that of AMX.
    """
    baseline = ctypes.CDLL(str(build_kernels.DEFAULT_OUT / LIBRARIES[0].file))
    if baseline.tl_allow_tiles():
        return len(LIBRARIES)
    return int(max(baseline.tl_cpu_level() - 1, 1) + baseline.tl_has_fast_dots())


def watched(clang: str, sanitizer: str, what: str, folder: Path) -> int:
    """Run the tests or the random calls with the libraries of a folder; return 1 if a sanitizer finds anything."""
    runtime = subprocess.run(
        [clang, f"-print-file-name=libclang_rt.{SANITIZERS[sanitizer][1]}-x86_64.so"],
        check=True, capture_output=True, text=True,
    ).stdout.strip()  # fmt: skip
    reports = folder / f"report-{what}"
    options = [
        f"log_path={reports}",
        "print_stacktrace=1",
        "detect_leaks=0",  # Python keeps memory until it ends
        "allocator_may_return_null=1",  # tests ask for more memory than there is
        "die_after_fork=0",  # a test forks a process with threads
        "exitcode=66",
    ]
    environment = os.environ | {
        "LD_PRELOAD": runtime,
        **dict.fromkeys(("ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"), ":".join(options)),
        "OMP_NUM_THREADS": "1",
        "PYTHONMALLOC": "malloc",  # so that each object is memory of its own
    }
    command = [sys.executable, ROOT / "scripts/kernel_tests.py", folder, what]
    status = subprocess.run(command, env=environment, cwd=ROOT).returncode
    last = folder / LAST_CALL
    if status and last.exists():
        print(f"{sanitizer}: the last call: {last.read_text()}", end="")
    found = [path.read_text(errors="replace") for path in sorted(folder.glob(f"{reports.name}*"))]
    for report in found:
        print(report)
    for kind in sorted(set(KIND.findall("\n".join(found)))):
        print(f"{sanitizer}: {kind}")
    return FAILED if status or found else 0


if __name__ == "__main__":
    sys.exit(main())
