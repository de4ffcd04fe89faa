"""The places at which parts of a call begin, by on_arrays.c compiled for 32-bit words as in WASM: no array is made."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from support.paths import ROOT

SOURCES = ROOT / "package" / "tallow" / "kernels" / "src"
HARNESS = """
#include "runtime/on_arrays.c"
EXPORT intptr_t begin_of_part(intptr_t parts, intptr_t groups, intptr_t group, intptr_t length, intptr_t i) {
  return bound((intptr_t[OWN]){[PARTS] = parts, [GROUPS] = groups, [GROUP] = group, [LENGTH] = length}, i);
}
"""
CALLS = """
import { readFileSync } from "node:fs";
const module = new WebAssembly.Module(readFileSync(process.argv[2]));
const imports = {};
for (const { module: from, name } of WebAssembly.Module.imports(module)) (imports[from] ??= {})[name] = () => 0;
const { begin_of_part } = new WebAssembly.Instance(module, imports).exports;
console.log(JSON.stringify(JSON.parse(process.argv[3]).map((call) => begin_of_part(...call))));
"""
COMPILE = (
    "cc",
    "-target",
    "wasm32-freestanding",
    "-mcpu=generic+simd128+bulk_memory+atomics",
    "-O1",
    f"-I{SOURCES}",
    "-c",
)
LINK = ("wasm-ld", "--no-entry", "--allow-undefined", "--export=begin_of_part")
# Elements of 573 MB and of the largest arrays of WASM, and rows of such; the last one has what is left of a group.
RANGES = [
    (143_165_577, 1, 143_165_577),
    (2**29 - 1, 1, 2**29 - 1),
    (2**31 - 1, 1, 2**31 - 1),
    (10**8, 16, 1_599_999_993),
]


def test_bounds_do_not_overflow(tmp_path: Path, node: str) -> None:
    (tmp_path / "harness.c").write_text(HARNESS)
    (tmp_path / "calls.mjs").write_text(CALLS)
    zig = (sys.executable, "-m", "ziglang")
    subprocess.run([*zig, *COMPILE, "harness.c", "-o", "harness.o"], cwd=tmp_path, check=True)
    subprocess.run([*zig, *LINK, "harness.o", "-o", "harness.wasm"], cwd=tmp_path, check=True)
    calls = [(parts, *of, i) for parts in (1, 2, 3, 15, 16) for of in RANGES for i in range(parts + 1)]
    command = [node, tmp_path / "calls.mjs", tmp_path / "harness.wasm", json.dumps(calls)]
    bounds = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    for (parts, groups, group, length, i), begin in zip(calls, bounds, strict=True):
        assert begin == (groups * i // parts * group if i < parts else length), (parts, groups, i)
