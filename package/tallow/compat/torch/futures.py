"""torch.futures: results that another thread sets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent import futures
from typing import Any, Generic, TypeVar

T = TypeVar("T")

__all__ = ["Future", "collect_all", "wait_all"]


class Future(Generic[T]):
    """A result that is set once, by `set_result` or `set_exception`, and can be waited for from any thread.

    Args:
        devices: accepted for PyTorch's signature; results stay on the devices they are on.
    """

    def __init__(self, *, devices: Any = None) -> None:
        self.devices = devices
        self._future: futures.Future[Any] = futures.Future()

    def done(self) -> bool:
        """Return whether there is a result or an error."""
        return self._future.done()

    def wait(self) -> Any:
        """Return the result, once there is one. Raises: the error that was set in its place."""
        return self._future.result()

    def value(self) -> Any:
        """Return the result, which must be there. Raises: the error that was set; RuntimeError if there is neither."""
        if not self.done():
            raise RuntimeError("value: the future has no result yet")
        return self._future.result()

    def set_result(self, result: Any) -> None:
        """Set the result, and call what `then` and `add_done_callback` were given."""
        self._future.set_result(result)

    def set_exception(self, result: BaseException) -> None:
        """Set an error, which `wait` raises."""
        self._future.set_exception(result)

    def then(self, callback: Callable[[Future[Any]], Any]) -> Future[Any]:
        """Return a future of what `callback` makes of this one, once it is done."""
        following: Future[Any] = Future()

        def run(_: Any) -> None:
            try:
                following.set_result(callback(self))
            except Exception as error:
                following.set_exception(error)

        self._future.add_done_callback(run)
        return following

    def add_done_callback(self, callback: Callable[[Future[Any]], Any]) -> None:
        """Call `callback` with this future once it is done; its result is dropped."""
        self._future.add_done_callback(lambda _: callback(self))


def collect_all(futures: Sequence[Future[Any]]) -> Future[Any]:
    """Return a future of the list of these futures, done once all of them are."""
    collected: Future[Any] = Future()
    waiting = list(futures)

    def check(_: Any) -> None:
        if all(future.done() for future in waiting) and not collected.done():
            collected.set_result(waiting)

    for future in waiting:
        future.add_done_callback(check)
    if not waiting:
        collected.set_result([])
    return collected


def wait_all(futures: Sequence[Future[Any]]) -> list[Any]:
    """Return the results of these futures, once all are done. Raises: the first error among them."""
    return [future.wait() for future in collect_all(futures).wait()]
