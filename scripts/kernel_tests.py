"""Run the tests of the kernels, or random calls, with the libraries of one folder.

    python scripts/kernel_tests.py FOLDER tests [ARGUMENTS]     more arguments for pytest
    python scripts/kernel_tests.py FOLDER calls                 5,000, whose arrays lie between pages without access

For scripts/sanitize.py and scripts/aarch64.py, which build such libraries and prepare a process for this.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "package"), str(ROOT / "tests")]

RANDOM_CALLS = 5000
# What builds libraries, measures memory, ends processes on purpose, or needs another library than that of the folder.
LEFT_OUT = ("test_build.py", "test_blas.py", "test_freed_memory.py", "test_guarded_arrays.py")
# Starts a process that loads the usual library, and in which threads of OpenBLAS are watched as well.
FORKS = "tests/unit/kernels/test_threads.py::test_a_forked_child_has_threads_of_its_own"
LAST_CALL = "last-call"  # file in the folder


def main() -> int:
    """Run what the command line names with its libraries; return the exit status."""
    folder, what, *arguments = sys.argv[1:]
    from tallow import kernels

    kernels.library.FOLDER = folder
    loaded = kernels.info()
    if not loaded.kernels:
        print(f"kernel_tests: {loaded}")
        return 1
    print(f"kernel_tests: {what} with {loaded.summary}", flush=True)
    return make_calls(Path(folder, LAST_CALL)) if what == "calls" else run_tests(arguments)


def run_tests(arguments: list[str]) -> int:
    """Run the tests of the kernels in this process."""
    import pytest

    tests = ROOT / "tests/unit/kernels"
    options = ["-q", "-p", "no:cacheprovider", f"--rootdir={ROOT}", *(f"--ignore={tests / name}" for name in LEFT_OUT)]
    return int(pytest.main([*options, f"--deselect={FORKS}", *arguments, str(tests)]))


def make_calls(last: Path) -> int:
    """Make the random calls. `last` gets the one that is being made: a fault ends the process."""
    from support.random_calls import make_calls

    with last.open("w+") as file:

        def say(text: str) -> None:
            file.seek(0)
            file.write(f"{text}\n")
            file.truncate()
            file.flush()

        counts = make_calls(RANDOM_CALLS, 0, say)
    print(f"{sum(counts.values())} calls of {len(counts)} kernels")
    return 0


if __name__ == "__main__":
    sys.exit(main())
