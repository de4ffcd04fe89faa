"""CUDA graphs of torch.cuda: what a stream was given once, given again as a whole.

A launch costs the host some microseconds, and small kernels are done sooner than the next one is launched. A graph is
captured from a stream, which then notes what it is given and does nothing; a replay does all of it in one launch.

Captured are addresses, not tensors: a replay reads what then lies where the tensors of the capture lay, and writes its
results where those of the capture lie. So inputs are copied into the tensors that were captured, and results read, or
copied away, before the next replay. What depends on the host stays as it was at the capture: a Python number, a branch,
random numbers.

A whole training step:

    x, y = (tensor.to("cuda") for tensor in next(batches))        # the memory that every step reads
    for _ in range(3):                                            # compiles kernels and makes what is made once
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

`step` may read nothing back: `loss.item()`, the number of `clip_grad_norm_` and the like are read after a replay. An
optimizer whose step counts, as Adam's does, has to count on the device.

Source:  NVIDIA, "CUDA C++ Programming Guide", CUDA Graphs; torch.cuda.CUDAGraph
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Any, ClassVar

from tallow import cuda
from tallow.autograd.modes import mode, no_grad
from tallow.cuda.streams import Stream, current_stream, default_stream
from tallow.cuda.streams import stream as use_stream
from tallow.devices import get_backend
from tallow.errors import ArgumentError, DeviceError, GraphError, ShapeError, TallowError
from tallow.nn.module import Module
from tallow.tensor import Tensor

__all__ = ["CUDAGraph", "graph", "graph_pool_handle", "is_current_stream_capturing", "make_graphed_callables"]

KERNELS_ALONE = (
    "a graph holds what the device does alone: read values (.item(), .cpu(), print, if) and copy from the host "
    "outside of it, and run the same once before, so that nothing is compiled in it"
)


def _cuda() -> Any:
    """CuPy's module. Raises:  DeviceError without CuPy or a GPU"""
    return get_backend("cuda").module.cuda


def _backend() -> Any:
    """CuPy's backend, which does more than any has to."""
    return get_backend("cuda")


def graph_pool_handle() -> Any:
    """Memory for several graphs, which are then replayed in the order of their captures."""
    return _backend().graph_pool()


def is_current_stream_capturing() -> bool:
    """Whether what ops are given now goes into a graph."""
    return bool(_cuda().get_current_stream().is_capturing())


class CUDAGraph:
    """Work that was captured from a stream, as torch.cuda.CUDAGraph; `tl.cuda.graph` captures it.

    Its tensors have memory of their own, which nothing else is given as long as the graph is there.
    """

    def __init__(self) -> None:
        self._pool: Any = None
        self._captured: Any = None
        self._capturing: tuple[Any, Any] | None = None  # the stream, and the allocator that was in use

    def capture_begin(self, pool: Any = None) -> None:
        """Capture what the current stream is given from now on.

        Args:    pool: memory for the tensors, of `graph_pool_handle` or another graph's `pool()`
        Raises:  GraphError on the default stream, or when the graph has been captured
        """
        if self._capturing or self._captured is not None:
            raise GraphError("this CUDAGraph has captured something already", mend="make another, or reset() it")
        stream = current_stream()
        if stream == default_stream():
            raise GraphError(
                "the default stream cannot be captured", mend="capture within `with tl.cuda.graph(g):`, or in a Stream"
            )
        _backend().prepare_capture()
        self._pool = graph_pool_handle() if pool is None else pool
        allocator = _cuda().using_allocator(self._pool.malloc)
        # Memory that the pool has not yet comes from the driver during the capture, which the other modes forbid.
        stream.cupy_stream.begin_capture(_cuda().runtime.streamCaptureModeRelaxed)
        allocator.__enter__()
        self._capturing = stream.cupy_stream, allocator

    def capture_end(self) -> None:
        """Raises:  GraphError when nothing is being captured; DeviceError for something that cannot be in a graph"""
        if self._capturing is None:
            raise GraphError("capture_end: nothing is being captured", mend="call capture_begin() first")
        stream, allocator = self._capturing
        self._capturing = None
        allocator.__exit__(None, None, None)
        try:
            self._captured = stream.end_capture()
        except Exception as error:
            explained = _explained(error)
            if explained is None:
                raise
            raise explained from error

    def replay(self) -> None:
        """Give the current stream all that was captured.  Raises: GraphError before the capture"""
        if self._captured is None:
            raise GraphError("replay: nothing has been captured", mend="capture it: `with tl.cuda.graph(g): ...`")
        self._captured.launch()

    def reset(self) -> None:
        """Forget what was captured. The memory of its tensors is given back when they are gone."""
        self._captured = self._pool = None

    def pool(self) -> Any:
        """The memory of the graph's tensors, for `tl.cuda.graph(other, pool=...)`."""
        return self._pool


class graph:
    """Within the block, what is computed is captured and not done: `with tl.cuda.graph(g): y = model(x)`.

    Args:
        cuda_graph: that is to hold it.
        pool: as `CUDAGraph.capture_begin`
        stream: to capture from; if None, one for all captures on a device.

    Raises:  DeviceError, at the end, when something within cannot be part of a graph; the cause says what.
             OutOfMemoryError where the device has no more for the graph: memory of earlier graphs is not taken
    """

    _streams: ClassVar[dict[Any, Stream]] = {}  # by library and device

    def __init__(self, cuda_graph: CUDAGraph, pool: Any = None, stream: Stream | None = None) -> None:
        self.cuda_graph = cuda_graph
        self._pool = pool
        key = _cuda().Stream, cuda.current_device()
        self._stream = stream or self._streams.get(key) or self._streams.setdefault(key, Stream())

    def __enter__(self) -> None:
        cuda.synchronize(self._stream.device)  # what comes before is done, on whatever stream
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
                raise  # else it follows from that one
        finally:
            self._entered.close()
        if error is not None:
            self.cuda_graph.reset()
            explained = _explained(error)
            if explained is not None:
                raise explained from error


def _explained(error: BaseException) -> DeviceError | None:
    """The error that CuPy or CUDA raises for what cannot be captured, in our words; None for any other."""
    if isinstance(error, TallowError) or not isinstance(error, RuntimeError) or "captur" not in str(error).lower():
        return None
    return DeviceError(f"this cannot be part of a CUDA graph: {error}", mend=KERNELS_ALONE)


def make_graphed_callables(
    callables: Callable[..., Any] | Sequence[Callable[..., Any]],
    sample_args: Sequence[Any],
    num_warmup_iters: int = 3,
    pool: Any = None,
) -> Any:
    """Functions or modules of tensors, each as a graph: a call copies its arguments and replays.

    What it returns lies in the graph's memory, and the next call overwrites it. A module is returned itself, with the
    graph as its forward pass. Unlike PyTorch's, these have no backward pass: capture a whole training step instead, as
    the top of this file does.

    Args:
        callables: one, or several, which are then called in this order and share their memory.
        sample_args: the tensors that one is called with; of several, a tuple for each. They are where arguments are
            copied to.
        num_warmup_iters: how often each is called before it is captured.
        pool: as `CUDAGraph.capture_begin`

    Raises:  ArgumentError for arguments that are no CUDA tensors; DeviceError for what cannot be captured.
             A call raises ShapeError for other shapes or dtypes, GraphError where it would have to be differentiated.
    """
    if callable(callables):
        return _graphed(callables, tuple(sample_args), num_warmup_iters, pool)
    if len(callables) != len(sample_args):
        raise ArgumentError(f"make_graphed_callables: {len(callables)} callables, {len(sample_args)} sample_args")
    pool = graph_pool_handle() if pool is None else pool
    pairs = zip(callables, sample_args, strict=True)
    return tuple(_graphed(each, tuple(args), num_warmup_iters, pool) for each, args in pairs)


def _graphed(function: Callable[..., Any], held: tuple[Any, ...], warmups: int, pool: Any) -> Any:
    if not all(isinstance(tensor, Tensor) and tensor.is_cuda for tensor in held):
        raise ArgumentError(
            "make_graphed_callables: sample_args must be tensors on cuda", mend="move them: x.to('cuda')"
        )
    captured = CUDAGraph()
    with no_grad():
        for _ in range(warmups):
            function(*held)
        with graph(captured, pool):
            result = function(*held)
    parameters = list(function.parameters()) if isinstance(function, Module) else []

    def replayed(*args: Tensor) -> Any:
        _check(args, held, parameters)
        with no_grad():
            for to, given in zip(held, args, strict=True):
                if given is not to:
                    to.copy_(given)
        captured.replay()
        return result

    if isinstance(function, Module):
        function.forward = replayed  # type: ignore[method-assign]
        return function
    return replayed


def _check(args: tuple[Tensor, ...], held: tuple[Tensor, ...], parameters: Sequence[Tensor]) -> None:
    given, captured = ([(tuple(x.shape), x.dtype) for x in tensors] for tensors in (args, held))
    if given != captured:
        raise ShapeError(
            f"a graph was captured for {captured} and called with {given}", mend="make another graph for these"
        )
    if mode.recording and any(x.requires_grad for x in (*args, *parameters)):
        raise GraphError(
            "a graphed callable has no backward pass",
            mend="call it under no_grad(), or capture the whole training step",
        )
