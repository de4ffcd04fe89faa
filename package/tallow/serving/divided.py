"""Slots of a model that is divided among processes: the engine of rank 0 decides what all of them do.

    dist.init_process_group(timeout=ENDLESS)
    model = TensorParallelLlama.from_pretrained(folder)
    slots = open_divided_slots(model, 8)   # in all ranks
    slots.follow()                         # in all ranks but 0, until rank 0 calls `slots.close()`

Each process has its part of the model, and of the keys and values of each text. What changes them in rank 0 changes
them in the others: before each call, rank 0 sends its arguments, and the others call the same.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import timedelta
from typing import Any

from tallow.distributed import broadcast_object_list, get_rank
from tallow.dtypes import Array
from tallow.errors import DistributedError, TallowError
from tallow.generation.slots import SeparateSlots, open_slots
from tallow.models.parallel import TensorParallelLlama

ENDLESS = timedelta(days=36_500)  # the others wait for the next request
BEGIN, TRUNCATE, COPY_KNOWN, READ, CLOSE = "begin", "truncate", "copy_known", "read", "close"


class DividedSlots(SeparateSlots):
    """Slots with a cache each; those of rank 0 are followed by those of all other ranks."""

    def begin(self, slot: int, salt: str = "") -> None:
        self._send(BEGIN, slot, salt)
        super().begin(slot, salt)  # which sends `truncate`, too

    def truncate(self, slot: int, length: int) -> None:
        self._send(TRUNCATE, slot, length)
        super().truncate(slot, length)

    def copy_known(self, slot: int, tokens: Sequence[int]) -> int:
        self._send(COPY_KNOWN, slot, [*tokens])
        return super().copy_known(slot, tokens)

    def read(self, new: Mapping[int, Sequence[int]], every: Collection[int] = ()) -> list[Array]:
        self._send(READ, {slot: [*tokens] for slot, tokens in new.items()}, [*every])
        return super().read(new, every)

    def close(self) -> None:
        super().close()
        self._send(CLOSE)

    def follow(self) -> None:
        """Do what the slots of rank 0 do, until they are closed.

        Raises:  DistributedError when rank 0 has ended, or does something else
        """
        calls: dict[str, Callable[..., object]] = {
            BEGIN: super().begin,
            TRUNCATE: super().truncate,
            COPY_KNOWN: super().copy_known,
            READ: super().read,
        }
        while (call := _received())[0] != CLOSE:
            try:
                calls[call[0]](*call[1:])
            except DistributedError:
                raise
            except TallowError:  # of this text, in rank 0 too, whose engine tells the client
                continue

    def _send(self, *call: Any) -> None:
        if get_rank() == 0:
            broadcast_object_list([[*call]])


def _received() -> list[Any]:
    received: list[Any] = [None]
    broadcast_object_list(received)
    return list(received[0])


def open_divided_slots(
    model: TensorParallelLlama, count: int, length: int | None = None, *, cache_dtype: Any = None, **options: Any
) -> DividedSlots:
    """Return slots for `count` texts; as `open_slots`, with equal arguments in all ranks."""
    slots = open_slots(model, count, length, cache_dtype=cache_dtype, **options)
    return DividedSlots(model, slots.count, slots.length, slots.pages, cache_dtype)
