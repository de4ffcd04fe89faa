"""CUDA graphs, as in torch.cuda: capture the work given to a stream once, and replay it as a whole.

A launch costs the host a few microseconds, and small kernels finish before the next one is launched. While a graph is
captured, the stream records its work and does nothing; a replay does all of it with one launch.

A graph holds addresses, not tensors: a replay reads the memory of the captured inputs, and overwrites the memory of the
captured results. So copy new inputs into the captured tensors, and read or copy the results before the next replay.
Everything that depends on the host stays as it was at the capture: Python numbers, branches, random numbers.

A whole training step:

    x, y = (tensor.to("cuda") for tensor in next(batches))        # every step reads this memory
    for _ in range(3):                                            # warm up: compile kernels, allocate state
        step(x, y)
    optimizer.zero_grad(set_to_none=True)
    g = tl.cuda.CUDAGraph()
    with tl.cuda.graph(g):
        loss = step(x, y)                                         # forward, backward() and optimizer.step()
    for inputs, targets in batches:
        x.copy_(inputs)
        y.copy_(targets)
        g.replay()
        print(loss.item())

`step` must not read values back: read `loss.item()`, the result of `clip_grad_norm_` and so on after a replay. An
optimizer that counts its steps, such as Adam, must count on the device.

Source:  NVIDIA, "CUDA C++ Programming Guide", CUDA Graphs; torch.cuda.CUDAGraph
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Any, ClassVar

from tallow import cuda
from tallow.core.tensor import Tensor
from tallow.cuda.streams import Stream, current_stream, default_stream
from tallow.cuda.streams import stream as use_stream
from tallow.devices import get_backend, is_loaded
from tallow.errors import ArgumentError, DeviceError, GraphError, ShapeError, TallowError
from tallow.nn.module import Module
from tallow.tape.modes import mode, no_grad

__all__ = ["CUDAGraph", "graph", "graph_pool_handle", "is_current_stream_capturing", "make_graphed_callables"]

KERNELS_ALONE = (
    "a graph holds only work of the device: read values (.item(), .cpu(), print, if) and copy from the host "
    "outside of it, and run the same code once before, so that nothing is compiled during the capture"
)


def _cuda() -> Any:
    """Return the module cupy.cuda. Raises: DeviceError without CuPy or a GPU."""
    return get_backend("cuda").module.cuda


def _backend() -> Any:
    """Return the CuPy backend, which has more methods than `devices.Backend`."""
    return get_backend("cuda")


def graph_pool_handle() -> Any:
    """Return a memory pool for several graphs. Replay these in the order of their captures."""
    return _backend().graph_pool()


def is_current_stream_capturing() -> bool:
    """Return whether ops are captured in a graph now. Programs ask at every step, also where there is no GPU."""
    return is_loaded("cuda") and bool(_cuda().get_current_stream().is_capturing())


class CUDAGraph:
    """Work captured from a stream, as torch.cuda.CUDAGraph; `tl.cuda.graph` captures it.

    Its tensors are in a separate memory pool, which nothing else uses while the graph exists.
    """

    def __init__(self) -> None:
        self._pool: Any = None
        self._captured: Any = None
        self._capturing: tuple[Any, Any] | None = None  # the stream, and the allocator that was in use

    def capture_begin(self, pool: Any = None) -> None:
        """Start to capture the work of the current stream.

        Args:
            pool: memory pool for the tensors, from `graph_pool_handle` or another graph's `pool()`.

        Raises: GraphError on the default stream, or if the graph has captured something already.
        """
        if self._capturing or self._captured is not None:
            raise GraphError("this CUDAGraph has captured something already", hint="create another, or reset() it")
        stream = current_stream()
        if stream == default_stream():
            raise GraphError(
                "the default stream cannot be captured", hint="capture within `with tl.cuda.graph(g):`, or in a Stream"
            )
        _backend().prepare_capture()
        self._pool = graph_pool_handle() if pool is None else pool
        allocator = _cuda().using_allocator(self._pool.malloc)
        # The pool may ask the driver for memory during the capture, which the other modes forbid.
        stream.cupy_stream.begin_capture(_cuda().runtime.streamCaptureModeRelaxed)
        allocator.__enter__()
        self._capturing = stream.cupy_stream, allocator

    def capture_end(self) -> None:
        """End the capture.

        Raises: GraphError if nothing is being captured; DeviceError for work that cannot be part of a graph.
        """
        if self._capturing is None:
            raise GraphError("capture_end: nothing is being captured", hint="call capture_begin() first")
        stream, allocator = self._capturing
        self._capturing = None
        allocator.__exit__(None, None, None)
        try:
            self._captured = stream.end_capture()
        except Exception as error:
            explanation = _explain(error)
            if explanation is None:
                raise
            raise explanation from error

    def replay(self) -> None:
        """Run the captured work on the current stream. Raises: GraphError before a capture."""
        if self._captured is None:
            raise GraphError("replay: nothing has been captured", hint="capture it: `with tl.cuda.graph(g): ...`")
        self._captured.launch()

    def reset(self) -> None:
        """Delete the captured work. The memory of its tensors is freed when they are."""
        self._captured = self._pool = None

    def pool(self) -> Any:
        """Return the memory pool of the graph's tensors, for `tl.cuda.graph(other, pool=...)`."""
        return self._pool


class graph:
    """Capture the ops within a block, without running them: `with tl.cuda.graph(g): y = model(x)`.

    Args:
        cuda_graph: the graph to capture into.
        pool: as for `CUDAGraph.capture_begin`.
        stream: the stream to capture from; None is one stream per device, shared by all captures.

    Raises: DeviceError at the end of the block for work that cannot be part of a graph; its cause names it.
        OutOfMemoryError if the device has no memory left for the graph: that of earlier graphs is not reused.
    """

    _streams: ClassVar[dict[Any, Stream]] = {}  # (library, device) -> stream

    def __init__(self, cuda_graph: CUDAGraph, pool: Any = None, stream: Stream | None = None) -> None:
        self.cuda_graph = cuda_graph
        self._pool = pool
        key = _cuda().Stream, cuda.current_device()
        self._stream = stream or self._streams.get(key) or self._streams.setdefault(key, Stream())

    def __enter__(self) -> None:
        cuda.synchronize(self._stream.device)  # finish earlier work on all streams
        with ExitStack() as entered:
            entered.enter_context(use_stream(self._stream))
            self.cuda_graph.capture_begin(self._pool)
            self._entered = entered.pop_all()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self.cuda_graph.capture_end()
        except Exception:
            if error is None:
                raise  # otherwise it is a consequence of the error in the block
        finally:
            self._entered.close()
        if error is not None:
            self.cuda_graph.reset()
            explanation = _explain(error)
            if explanation is not None:
                raise explanation from error


def _explain(error: BaseException) -> DeviceError | None:
    """Return a DeviceError for an error that CuPy or CUDA raises for work that cannot be captured; else None."""
    if isinstance(error, TallowError) or not isinstance(error, RuntimeError) or "captur" not in str(error).lower():
        return None
    return DeviceError(f"this cannot be part of a CUDA graph: {error}", hint=KERNELS_ALONE)


def make_graphed_callables(
    callables: Callable[..., Any] | Sequence[Callable[..., Any]],
    sample_args: Sequence[Any],
    num_warmup_iters: int = 3,
    pool: Any = None,
) -> Any:
    """Capture functions or modules as graphs. A call copies its arguments into the graph and replays it.

    The result is in the graph's memory, and the next call overwrites it. A module is returned itself, with the graph
    as its forward pass. Unlike in PyTorch there is no backward pass: capture a whole training step instead, as shown
    at the top of this file.

    Args:
        callables: one, or several that are called in this order and share memory.
        sample_args: the tensors to call it with; for several, a tuple for each. Calls copy their arguments to them.
        num_warmup_iters: number of calls before the capture.
        pool: as for `CUDAGraph.capture_begin`.

    Raises: ArgumentError for arguments that are not CUDA tensors; DeviceError for work that cannot be captured.
        A call raises ShapeError for other shapes or dtypes, GraphError if it would have to be recorded for backward.
    """
    if callable(callables):
        return _graphed(callables, tuple(sample_args), num_warmup_iters, pool)
    if len(callables) != len(sample_args):
        raise ArgumentError(f"make_graphed_callables: {len(callables)} callables, {len(sample_args)} sample_args")
    pool = graph_pool_handle() if pool is None else pool
    pairs = zip(callables, sample_args, strict=True)
    return tuple(_graphed(each, tuple(args), num_warmup_iters, pool) for each, args in pairs)


def _graphed(function: Callable[..., Any], inputs: tuple[Any, ...], warmups: int, pool: Any) -> Any:
    """Capture one function or module; `inputs` are the tensors that the graph reads."""
    if not all(isinstance(tensor, Tensor) and tensor.is_cuda for tensor in inputs):
        raise ArgumentError(
            "make_graphed_callables: sample_args must be tensors on cuda", hint="move them: x.to('cuda')"
        )
    captured = CUDAGraph()
    with no_grad():
        for _ in range(warmups):
            function(*inputs)
        with graph(captured, pool):
            result = function(*inputs)
    parameters = list(function.parameters()) if isinstance(function, Module) else []

    def replayed(*args: Tensor) -> Any:
        _check(args, inputs, parameters)
        with no_grad():
            for target, source in zip(inputs, args, strict=True):
                if source is not target:
                    target.copy_(source)
        captured.replay()
        return result

    if isinstance(function, Module):
        function.forward = replayed  # type: ignore[method-assign]
        return function
    return replayed


def _check(args: tuple[Tensor, ...], inputs: tuple[Tensor, ...], parameters: Sequence[Tensor]) -> None:
    """Raise an error unless a graph captured with `inputs` can be replayed for `args`."""
    actual, captured = ([(tuple(x.shape), x.dtype) for x in tensors] for tensors in (args, inputs))
    if actual != captured:
        raise ShapeError(
            f"a graph was captured for {captured} and called with {actual}", hint="capture another graph for these"
        )
    if mode.recording and any(x.requires_grad for x in (*args, *parameters)):
        raise GraphError(
            "a graphed callable has no backward pass",
            hint="call it under no_grad(), or capture the whole training step",
        )
