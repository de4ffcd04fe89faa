"""Python's part of a start from a snapshot of its memory: before the snapshot is made, and after it has been loaded.

snapshot_writer.mjs calls `prepare` in Node when a site is built; start.js calls `renew` in the tab.
"""

from __future__ import annotations

import gc
import linecache
import os
import random
import sys
import tempfile
import time
import uuid
from collections.abc import Mapping
from importlib.machinery import FileFinder
from pathlib import Path

import numpy as np

import tallow
from tallow.kernels import library, table, threads

KERNELS = "wasm relaxed-simd"  # those of most browsers
INSTALLED_FROM = {
    "INSTALLER": "pyodide.loadPackage",
    "PYODIDE_SOURCE": "pyodide",
}  # what Pyodide writes for its packages
SET_BY_PYODIDE = ("LD_LIBRARY_PATH",)
DAY = 86400
YEAR, WINTER, SUMMER = 365.2425 * DAY, 10 * DAY, 191 * DAY  # the last two: from the start of a year


def prepare() -> dict[str, str]:
    """Forget what only this machine has. Return the texts of small files that Python reads at every start, by path.

    Raises:  RuntimeError if there is a random generator that `renew` does not know, or if the kernels are not KERNELS
    """
    table.provide("cpu")  # load the kernels
    if library.name() != KERNELS:
        raise RuntimeError(f"the kernels here are {library.name()}, not {KERNELS}")
    threads.offer.cache_clear()  # the page offers threads later
    sys.path.remove("")  # Pyodide inserts it at every start
    linecache.clearcache()
    tempfile._name_sequence = None  # type: ignore[attr-defined]  # made anew when needed, with new names
    gc.collect()
    for found in gc.get_objects():
        if _is_seeded(found):
            raise RuntimeError(f"a module keeps {found!r}, whose numbers would be the same in every tab")
    texts = {}
    for folder in Path(np.__file__).parents[1].glob("*.dist-info"):
        texts |= {f"{folder}/{name}": text for name, text in INSTALLED_FROM.items()}
        texts[f"{folder}/METADATA"] = (folder / "METADATA").read_text(encoding="utf-8")
    return texts


def renew(environment: Mapping[str, str]) -> None:
    """Take up the tab's environment and time zone, and draw new random states.

    Not renewed is the hash of strings: dictionaries keep the hashes of their keys.
    """
    kept = {name: value for name, value in os.environ.items() if name in SET_BY_PYODIDE}
    os.environ.clear()
    os.environ.update({**environment, **kept})
    _set_time_zone()
    random.seed()
    np.random.seed()  # the state behind NumPy's functions
    tallow.random.default_generator.seed()
    uuid._node = uuid._last_timestamp = None  # type: ignore[attr-defined]
    for finder in sys.path_importer_cache.values():
        if isinstance(finder, FileFinder):  # the folders have been made again
            finder.invalidate_caches()


def _is_seeded(found: object) -> bool:
    """Return whether `found` is a random generator with a state, other than those that `renew` seeds."""
    if isinstance(found, tallow.Generator):
        return found._seed not in (None, 0)  # code that sets 0 wants the same numbers in every tab
    if isinstance(found, random.Random):
        return not isinstance(found, random.SystemRandom) and found is not random._inst  # type: ignore[attr-defined]
    if isinstance(found, np.random.RandomState):
        return found is not np.random.mtrand._rand  # type: ignore[attr-defined]
    return isinstance(found, np.random.Generator)


def _set_time_zone() -> None:
    """Set the constants of `time`, as CPython does when it imports the module."""
    start = (time.gmtime().tm_year - 1970) * YEAR
    winter, summer = time.localtime(start + WINTER), time.localtime(start + SUMMER)
    standard, saving = sorted((winter, summer), key=lambda moment: moment.tm_gmtoff)
    time.timezone, time.altzone = -standard.tm_gmtoff, -saving.tm_gmtoff
    time.daylight = int(standard.tm_gmtoff != saving.tm_gmtoff)
    time.tzname = (standard.tm_zone, saving.tm_zone)
