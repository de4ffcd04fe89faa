"""tallow on a GPU beside PyTorch on the same one, and beside what the card can do: `bench.py --gpu`.

Times are medians between CUDA events. What the card can do is measured first: copying in its memory, and PyTorch's
product of bfloat16 matrices. A goal is a ratio that tallow is to reach; the table says which it does.
"""

from __future__ import annotations

import gc
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from bench import gpu_workloads, report
from bench.gpu_workloads import Sizes, Work

LIMIT_S = 7 * 60  # no row is begun after that; the longest take less than a minute
BUDGET_S = 3.0
LEAST, MOST = 3, 50

Make = Callable[[Any, str, Sizes], Work]


@dataclass(frozen=True)
class Side:
    """A library, its device, and how it tells the time there."""

    library: Any
    device: str
    event: Callable[[], Any]
    empty_cache: Callable[[], None]


@dataclass(frozen=True)
class Line:
    """A row of the table.

    Attributes:
        theirs: what PyTorch does; as tallow if None.
        goal: the least speed, PyTorch's being 1.
        share: the least part of the limit, for what moves bytes: of the copy bandwidth.
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


def main() -> None:
    """Raises:  SystemExit, with what is missing, without a GPU"""
    ours = tallow_side()
    theirs, note = torch_side()
    print(f"{ours.library.cuda.get_device_name()}; {report.machine()}\n")
    rows, notes = measure_all(ours, theirs, Sizes(), LINES)
    print(report.table(rows))
    for text in (*([note] if note else []), *notes):
        print(f"  {text}")
    print(f"  import to the first kernel, warm: {first_kernel_s():.2f} s; the goal is 1.5 s")


def tallow_side() -> Side:
    import tallow as tl
    from tallow.errors import DeviceError

    try:
        tl.cuda.synchronize()
    except DeviceError as error:
        raise SystemExit(f"bench.py --gpu: {error}") from error
    return Side(tl, "cuda", lambda: tl.cuda.Event(enable_timing=True), tl.cuda.empty_cache)


def torch_side() -> tuple[Side | None, str | None]:
    """PyTorch on the GPU; or None, and why."""
    try:
        import torch
    except ImportError:
        return None, "PyTorch is not installed: nothing to compare with"
    if not torch.cuda.is_available():
        return None, f"PyTorch {torch.__version__} does not see the GPU: nothing to compare with"
    return Side(torch, "cuda", lambda: torch.cuda.Event(enable_timing=True), torch.cuda.empty_cache), None


def measure_all(
    ours: Side, theirs: Side | None, sizes: Sizes, lines: Sequence[Line], limit_s: float = LIMIT_S
) -> tuple[list[report.Row], list[str]]:
    """The rows of the table, and notes below it."""
    started = time.monotonic()
    copied = measure(ours, gpu_workloads.copy, sizes)
    if isinstance(copied, str):
        raise SystemExit(f"bench.py --gpu: not even a copy: {copied}")
    rate = _work_per_s(copied, "bytes")
    notes = [f"copying: {rate / 1e9:,.0f} GB/s, read and written"]
    rows = []
    for line in lines:
        if time.monotonic() - started > limit_s:
            notes.append(f"{line.name}: no time left")
            continue
        print(line.name, file=sys.stderr)
        rows.append(_row(line, ours, theirs, sizes, rate, notes))
    return rows, notes


def _row(line: Line, ours: Side, theirs: Side | None, sizes: Sizes, bytes_per_s: float, notes: list[str]) -> report.Row:
    results = {"tallow": measure(ours, line.make, sizes)}
    if theirs is not None:
        results["PyTorch"] = measure(theirs, line.theirs or line.make, sizes)
    notes += [f"{line.name}: {name}: {result}" for name, result in results.items() if isinstance(result, str)]
    times = {name: result.median_ms for name, result in results.items() if isinstance(result, Result)}
    row: report.Row = {"": line.name, "tallow, ms": times.get("tallow", ""), "PyTorch, ms": times.get("PyTorch", "")}
    mine, speed, share = results["tallow"], None, None
    if len(times) == 2:
        speed = times["PyTorch"] / times["tallow"]
    if isinstance(mine, Result) and mine.work.bytes:
        share = _work_per_s(mine, "bytes") / bytes_per_s
    row["TFLOP/s"] = _work_per_s(mine, "flops") / 1e12 if isinstance(mine, Result) and mine.work.flops else ""
    row["tokens/s"] = _work_per_s(mine, "tokens") if isinstance(mine, Result) and mine.work.tokens else ""
    row["speed, PyTorch = 1"] = _beside(speed, line.goal)
    row["of the bandwidth"] = _beside(share, line.share)
    return row


def _beside(value: float | None, goal: float | None) -> str:
    """A ratio and its goal."""
    if value is None:
        return "" if goal is None else f"?, goal {goal:g}"
    if goal is None:
        return f"{value:.2f}"
    return f"{value:.2f}, goal {goal:g}: {'met' if value >= goal else 'missed'}"


@dataclass(frozen=True)
class Result:
    """How long a step of a work took."""

    work: Work
    median_ms: float


def _work_per_s(result: Result, unit: str) -> float:
    return getattr(result.work, unit) / (result.median_ms / 1e3)


def measure(side: Side, make: Make, sizes: Sizes) -> Result | str:
    """What a step takes; or why it cannot be told."""
    try:
        work = make(side.library, side.device, sizes)
        for _ in range(2):
            work.step()
        return Result(work._replace(step=lambda: None), statistics.median(_times_ms(side, work.step)))
    except (MemoryError, RuntimeError, ImportError) as error:  # out of memory is a RuntimeError of PyTorch's
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"
    finally:
        work = None  # type: ignore[assignment]  # its tensors go before the next one's come
        gc.collect()
        side.empty_cache()


def _times_ms(side: Side, step: Callable[[], Any]) -> list[float]:
    times: list[float] = []
    while len(times) < LEAST or (sum(times) < BUDGET_S * 1e3 and len(times) < MOST):
        start, end = side.event(), side.event()
        start.record()
        step()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end))
    return times


def first_kernel_s() -> float:
    """From the start of the import to the end of the first kernel, in a process of its own, the second time."""
    code = (
        "import time; start = time.perf_counter(); import tallow as tl; x = tl.ones(8, device='cuda'); (x * x).cpu(); "
        "print(time.perf_counter() - start)"
    )
    command = [sys.executable, "-c", f"import sys; sys.path[:0] = {sys.path[:4]}; {code}"]
    times = [subprocess.run(command, capture_output=True, text=True, check=True).stdout for _ in range(2)]
    return float(times[-1])
