#!/usr/bin/env python3
"""Measure tallow's speed claims, together with the libraries they are compared with, in one run.

    python scripts/bench.py matmul --browser
    python scripts/bench.py llama --native --browser --run-c path/to/llama2.c/run.c
    python scripts/bench.py ops import data
    python scripts/bench.py training --workload mlp
    python scripts/bench.py --gpu
    python scripts/bench.py whisper --native --browser --onnx FOLDER
    python scripts/bench.py matmul --browser --threads 2 --jax FOLDER
    python scripts/bench.py start --browser --wllama FOLDER
    python scripts/bench.py serve --minutes 5
    python scripts/bench.py attack

Places: --native (this interpreter, the default), --pyodide (Pyodide in Node), --browser (Pyodide in Chromium).
Each claim is a module of scripts/bench/. Everything runs on one thread, in a browser on --threads; native training also
runs on two. --gpu compares tallow and PyTorch on the same GPU. A benchmark is not a test: it prints numbers and judges
nothing.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before anything imports NumPy
# The checkout's own package, then build_kernels.py, then this folder's bench.
sys.path[:0] = [str(ROOT / "package"), str(ROOT / "native_gpu"), str(ROOT), str(ROOT / "scripts")]

from bench import places, report  # noqa: E402 - the paths above come first
from bench.claims import CLAIMS  # noqa: E402


def main() -> None:
    arguments = _parse()
    if arguments.gpu or arguments.gpu_row:
        from bench import gpu

        if arguments.gpu_row:
            gpu.row(arguments.gpu_row)
        else:
            gpu.main(arguments.json)
    if not arguments.claim:
        return
    chosen = [place for place in places.PLACES if getattr(arguments, place)] or ["native"]
    print(report.machine())
    for claim in arguments.claim:
        for place in chosen:
            with tempfile.TemporaryDirectory() as folder:
                _show(claim, place, places.PLACES[place](CLAIMS[claim].job(arguments, Path(folder)), Path(folder)))


def _parse() -> argparse.Namespace:
    summary, _, rest = __doc__.partition("\n")
    parser = argparse.ArgumentParser(
        description=summary, epilog=rest, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "claim", nargs="*", choices=[*CLAIMS, []], metavar="claim", help=f"one or more of {', '.join(CLAIMS)}"
    )
    parser.add_argument("--gpu", action="store_true", help="print the table of bench/gpu.py; needs an NVIDIA GPU")
    parser.add_argument("--json", type=Path, help="--gpu: append each row to this file, as a line of JSON")
    parser.add_argument("--gpu-row", metavar="ROW", help="measure one row of --gpu in this process; print JSON")
    for place, function in places.PLACES.items():
        parser.add_argument(f"--{place}", action="store_true", help=function.__doc__)
    parser.add_argument("--checkpoint", type=Path, action="append", default=[], help="llama: also this file")
    parser.add_argument("--run-c", type=Path, help="llama: compare with this run.c of llama2.c; it is compiled first")
    parser.add_argument("--steps", type=int, default=255, help="llama: tokens to generate (default: %(default)s)")
    parser.add_argument(
        "--onnx", type=Path, help="matmul, whisper, in a browser: compare with this folder, see bench/whisper_onnx.py"
    )
    parser.add_argument(
        "--wllama", type=Path, help="llama, start, in a browser: compare with this folder, see bench/start.py"
    )
    parser.add_argument("--jax", type=Path, help="matmul, in a browser: compare with this folder, see bench/matmul.py")
    parser.add_argument(
        "--threads", type=int, default=1, help="in a browser: of all that is compared (default: %(default)s)"
    )
    parser.add_argument("--tokens", type=int, default=50, help="whisper: tokens of a text (default: %(default)s)")
    parser.add_argument("--workload", action="append", default=[], help="training: only this one of bench/workloads.py")
    parser.add_argument("--model", help="serve: this model in place of the built-in ones")
    parser.add_argument("--minutes", type=float, default=0.2, help="serve: of load (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=5, help="number of measurements of each (default: %(default)s)")
    arguments = parser.parse_args()
    if not (arguments.claim or arguments.gpu or arguments.gpu_row):
        parser.error("name a claim, or --gpu")
    return arguments


def _show(claim: str, place: str, result: dict[str, Any]) -> None:
    engine = ", ".join(part for part in (place, result.get("engine"), result.get("library")) if part)
    print(f"\n{claim}: {engine}\n{report.table(result['rows'])}")
    for note in result["notes"]:
        print(f"  {note}")


if __name__ == "__main__":
    main()
