"""tallow and PyTorch on the same GPU, compared with the limits of the card: `bench.py --gpu`.

Times are medians between CUDA events. The limits are measured first: copying within the card's memory, and PyTorch's
product of bfloat16 matrices. A goal is a ratio that tallow should reach; the table says whether it does.

Each row is measured in its own process, so that a row that breaks the GPU or hangs affects no other row.
"""

from __future__ import annotations

import gc
import json
import math
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench import gpu_workloads, report
from bench.gpu_workloads import Sizes, Work

LIMIT_S = 7 * 60  # no row starts after that
ROW_LIMIT_S = 90  # the longest take less than a minute
BUDGET_S = 1.0
SAMPLE_MS = 20.0
LEAST, MOST = 3, 50

Make = Callable[[Any, str, Sizes], Work]


@dataclass(frozen=True)
class Side:
    """A library, its device, and its clock on that device."""

    library: Any
    device: str
    event: Callable[[], Any]
    empty_cache: Callable[[], None]


@dataclass(frozen=True)
class Line:
    """A row of the table.

    Attributes:
        theirs: PyTorch's version; None means the same function as tallow's.
        goal: the lowest acceptable speed relative to PyTorch.
        share: the lowest acceptable fraction of the limit; for memory-bound rows, of the copy bandwidth.
    """

    name: str
    make: Make
    theirs: Make | None = None
    goal: float | None = None
    share: float | None = None


LINES = (
    Line("matmul", gpu_workloads.matmul, goal=0.97),
    Line("rms_norm", gpu_workloads.rms_norm, share=0.85),
    Line("layer_norm", gpu_workloads.layer_norm, share=0.85),
    Line("softmax", gpu_workloads.softmax, share=0.85),
    Line("cross_entropy", gpu_workloads.cross_entropy, share=0.85),
    Line("AdamW", gpu_workloads.adamw, share=0.85),
    Line("attention", gpu_workloads.attention, goal=0.6),
    Line("attention, and back", gpu_workloads.attention_backward, goal=0.5),
    Line("Llama 7B, a token", gpu_workloads.decode, gpu_workloads.decode_transformers, goal=3.0, share=0.85),
    Line("the same, int4", gpu_workloads.decode_int4, gpu_workloads.decode_transformers, share=0.7),
    Line("GPT 125M, a step", gpu_workloads.training, goal=0.7),
)


COPY = Line("copy", gpu_workloads.copy)  # the row that measures the bandwidth


@dataclass(frozen=True)
class Result:
    """The duration of a step, and the bytes it moved or the operations it computed."""

    median_ms: float
    bytes: int = 0
    flops: int = 0
    tokens: int = 0

    def per_s(self, amount: int) -> float:
        return amount / (self.median_ms / 1e3)


Results = dict[str, Result | str]  # of "tallow" and "PyTorch"; a string is the reason for a missing result


def main(results: Path | None = None) -> None:
    """Print the table, and append each row to the file `results` as a line of JSON once it is measured.

    Raises:  SystemExit with the reason if there is no GPU
    """
    import tallow as tl
    from tallow.errors import DeviceError

    try:
        name = tl.cuda.get_device_name()
    except DeviceError as error:
        raise SystemExit(f"bench.py --gpu: {error}") from error
    print(f"{name}; {report.machine()}\n")

    def measured(line: Line) -> Results:
        result = in_a_process(line)
        if results is not None:
            _write(results, line.name, result)
        return result

    rows, notes = measure_all(measured, LINES)
    print(report.table(rows))
    for text in notes:
        print(f"  {text}")
    print(f"  import to the first kernel, warm: {first_kernel_s():.2f} s; the goal is 1.5 s")


def in_a_process(line: Line) -> Results:
    """Run `bench.py --gpu-row` in a process; return its line."""
    script = Path(__file__).parents[1] / "bench.py"
    try:
        done = subprocess.run(
            [sys.executable, str(script), "--gpu-row", line.name],
            stdout=subprocess.PIPE,
            text=True,
            timeout=ROW_LIMIT_S,
        )
    except subprocess.TimeoutExpired:
        return {"tallow": f"not finished after {ROW_LIMIT_S} s"}
    try:
        return _from_json(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        return {"tallow": f"its process ended with {done.returncode}"}


def row(name: str) -> None:
    """Measure one line of the table in this process, and print it as JSON."""
    (line,) = (line for line in (COPY, *LINES) if line.name == name)
    print(_to_json(measure_line(line, tallow_side(), torch_side(), Sizes())))


def _to_json(results: Results) -> str:
    return json.dumps({name: r if isinstance(r, str) else asdict(r) for name, r in results.items()})


def _from_json(text: str) -> Results:
    return {name: r if isinstance(r, str) else Result(**r) for name, r in json.loads(text).items()}


def _write(path: Path, name: str, results: Results) -> None:
    """Return a line in the format of a test result: the outcome and the measurements."""
    mine = results["tallow"]
    line = {"test": name, "outcome": "failed" if isinstance(mine, str) else "passed", "results": _to_json(results)}
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def tallow_side() -> Side:
    import tallow as tl

    return Side(tl, "cuda", lambda: tl.cuda.Event(enable_timing=True), tl.cuda.empty_cache)


def torch_side() -> Side | str:
    """Return PyTorch on the GPU, or the reason why it is unavailable."""
    try:
        import torch
    except ImportError:
        return "PyTorch is not installed: nothing to compare with"
    if not torch.cuda.is_available():
        return f"PyTorch {torch.__version__} does not see the GPU: nothing to compare with"
    return Side(torch, "cuda", lambda: torch.cuda.Event(enable_timing=True), torch.cuda.empty_cache)


def measure_line(line: Line, ours: Side, theirs: Side | str, sizes: Sizes) -> Results:
    other = theirs if isinstance(theirs, str) else measure(theirs, line.theirs or line.make, sizes)
    return {"tallow": measure(ours, line.make, sizes), "PyTorch": other}


def measure_all(
    measured: Callable[[Line], Results], lines: Sequence[Line], limit_s: float = LIMIT_S
) -> tuple[list[report.Row], list[str]]:
    """Measure all rows; return the rows of the table and the notes below it."""
    started = time.monotonic()
    copied = measured(COPY)["tallow"]
    if isinstance(copied, str):
        raise SystemExit(f"bench.py --gpu: copying failed: {copied}")
    rate = copied.per_s(copied.bytes)
    notes = [f"copying: {rate / 1e9:,.0f} GB/s, read and written"]
    rows = []
    for line in lines:
        if time.monotonic() - started > limit_s:
            notes.append(f"{line.name}: no time left")
            continue
        results = measured(line)
        times = [f"{side} {r if isinstance(r, str) else f'{r.median_ms:.3g} ms'}" for side, r in results.items()]
        print(f"{line.name}: {', '.join(times)}", file=sys.stderr, flush=True)  # the table comes when all are there
        notes += [f"{line.name}: {name}: {result}" for name, result in results.items() if isinstance(result, str)]
        rows.append(_row(line, results, rate))
    return rows, notes


def _row(line: Line, results: Results, bytes_per_s: float) -> report.Row:
    mine, theirs = results["tallow"], results.get("PyTorch", "")
    row: report.Row = {"": line.name}
    row["tallow, ms"] = "" if isinstance(mine, str) else mine.median_ms
    row["PyTorch, ms"] = "" if isinstance(theirs, str) else theirs.median_ms
    row["TFLOP/s"] = row["tokens/s"] = ""
    speed = share = None
    if not isinstance(mine, str):
        if not isinstance(theirs, str):
            speed = theirs.median_ms / mine.median_ms
        if mine.bytes:
            share = mine.per_s(mine.bytes) / bytes_per_s
        row["TFLOP/s"] = mine.per_s(mine.flops) / 1e12 if mine.flops else ""
        row["tokens/s"] = mine.per_s(mine.tokens) if mine.tokens else ""
    row["speed, PyTorch = 1"] = _beside(speed, line.goal)
    row["of the bandwidth"] = _beside(share, line.share)
    return row


def _beside(value: float | None, goal: float | None) -> str:
    """Format a ratio and its goal."""
    if value is None:
        return "" if goal is None else f"?, goal {goal:g}"
    if goal is None:
        return f"{value:.2f}"
    return f"{value:.2f}, goal {goal:g}: {'met' if value >= goal else 'missed'}"


def measure(side: Side, make: Make, sizes: Sizes) -> Result | str:
    """Measure a step; return the result, or the reason why there is none."""
    try:
        work = make(side.library, side.device, sizes)
        for _ in range(2):
            work.step()
        return Result(statistics.median(_times_ms(side, work.step)), work.bytes, work.flops, work.tokens)
    except (MemoryError, RuntimeError, ImportError) as error:  # out of memory is a RuntimeError of PyTorch's
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"
    finally:
        work = None  # type: ignore[assignment]  # free its tensors before the next library allocates
        gc.collect()
        side.empty_cache()


def _times_ms(side: Side, step: Callable[[], Any]) -> list[float]:
    """Return the times of a step. Each is the mean of enough steps that the launch of the first one does not count."""

    def run(steps: int) -> float:
        start, end = side.event(), side.event()
        start.record()
        for _ in range(steps):
            step()
        end.record()
        end.synchronize()
        return start.elapsed_time(end)

    steps = max(1, math.ceil(SAMPLE_MS / run(1)))
    times: list[float] = []
    while len(times) < LEAST or (sum(times) * steps < BUDGET_S * 1e3 and len(times) < MOST):
        times.append(run(steps) / steps)
    return times


def first_kernel_s() -> float:
    """Return the seconds from the start of the import to the end of the first kernel, in a second, warm process."""
    code = (
        "import time; start = time.perf_counter(); import tallow as tl; x = tl.ones(8, device='cuda'); (x * x).cpu(); "
        "print(time.perf_counter() - start)"
    )
    command = [sys.executable, "-c", f"import sys; sys.path[:0] = {sys.path[:4]}; {code}"]
    times = [subprocess.run(command, capture_output=True, text=True, check=True).stdout for _ in range(2)]
    return float(times[-1])
