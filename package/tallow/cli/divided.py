"""`tallow serve` in several processes that MPI has started: they divide the language model among them.

Rank 0 answers requests, as one process does. The others compute their parts of the model, and nothing else.
"""

from __future__ import annotations

import argparse
import signal
from typing import Any

from tallow.cli.language_model import DTYPES
from tallow.cli.terminal import report
from tallow.distributed import barrier, get_rank, get_world_size, init_process_group
from tallow.distributed.mpi import world
from tallow.errors import ArgumentError, DistributedError
from tallow.generation.prefix_pages import PrefixPages
from tallow.hub import local_model
from tallow.models.auto import model_class
from tallow.models.decoders.llama import Llama
from tallow.models.parallel import TensorParallelLlama
from tallow.serving.divided import ENDLESS, open_divided_slots
from tallow.training.processes import Processes


def join(arguments: argparse.Namespace) -> int:
    """Join the other processes; return the rank of this one.

    Raises:  ArgumentError without a language model, or with options that several processes do not have
    """
    init_process_group(timeout=ENDLESS)
    if arguments.model is None:
        raise ArgumentError(
            f"{get_world_size()} processes, and no --model to divide among them",
            hint="pass a Llama; --replicas starts several processes with the built-in models",
        )
    for option in ("replicas", "quant"):
        if getattr(arguments, option) not in (1, None):
            raise ArgumentError(
                f"--{option} with {get_world_size()} processes that divide a model", hint="leave out one of the two"
            )
    return get_rank()


def load(arguments: argparse.Namespace) -> TensorParallelLlama:
    """Load the part of the language model that belongs to this process.

    Raises:  ArgumentError for a model that cannot be divided; CheckpointError, HubError
    """
    if get_rank() == 0:
        local_model(arguments.model)  # only one process downloads
    barrier()
    folder = local_model(arguments.model)
    kind = None if folder.is_file() else model_class(folder)
    if kind is not Llama:
        what = "a GGUF file" if kind is None else f"a {kind.__name__}"
        raise ArgumentError(
            f"{arguments.model} is {what}, which {get_world_size()} processes cannot divide",
            hint="pass a folder with a Llama, or start one process",
        )
    dtype = DTYPES[arguments.dtype] if arguments.dtype else None
    return TensorParallelLlama.from_pretrained(folder, dtype, Processes().device(arguments.device))


def follow(model: TensorParallelLlama, *, slots: int, prefix_bytes: int, **options: Any) -> None:
    """Compute with rank 0 until it ends.

    Args:  as the options of rank 0's TextEngine
    """
    for ending in (signal.SIGINT, signal.SIGTERM):  # rank 0 finishes its requests first
        signal.signal(ending, signal.SIG_IGN)
    try:
        open_divided_slots(model, slots, pages=PrefixPages(prefix_bytes), **options).follow()
    except DistributedError as error:
        report(f"error: {error}")
        world().abort()
