"""Check the rank and size that arguments, a URL or the environment specify.

PyTorch connects processes by these. Here MPI has done so already, and they must match MPI: torchrun, or a shell loop,
starts processes that MPI does not know, each of which would train alone.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from urllib.parse import parse_qsl, urlsplit

from tallow.distributed.mpi import World, is_launched
from tallow.distributed.stores import Store
from tallow.errors import ArgumentError, ArgumentTypeError

SCHEMES = ("env", "tcp", "file")


def has_world_size() -> bool:
    """Return whether the environment specifies several processes, as torchrun does."""
    return os.environ.get("WORLD_SIZE", "1") != "1"


def check_job(job: World, init_method: str | None, world_size: int, rank: int, store: Store | None = None) -> None:
    """Check that the specified rank and size match those of MPI.

    Raises:  ArgumentError if they differ, for an unsupported URL, and for tcp://, file:// and a store without them
    """
    if store is not None:
        if not isinstance(store, Store):
            raise ArgumentTypeError(f"init_process_group: store must be a Store, not {type(store).__name__}")
        if init_method is not None:
            raise ArgumentError("Cannot specify both init_method and store.")
        if world_size < 1 or rank < 0:
            raise ArgumentError(
                "world_size must be positive and rank must be non-negative if using store",
                hint=f"pass world_size={job.size}, rank={job.rank}",
            )
    url = urlsplit("env://" if init_method is None else init_method)
    if url.scheme not in SCHEMES:
        raise ArgumentError(
            f"init_process_group: unsupported init_method={init_method!r}",
            hint="omit it: MPI connects the processes",
        )
    query = dict(parse_qsl(url.query))
    for name, argument, actual in (("world_size", world_size, job.size), ("rank", rank, job.rank)):
        claim = (f"{name}={argument}", argument) if argument != -1 else _claim(name, url.scheme, query)
        if claim is None and url.scheme != "env":
            raise ArgumentError(f"init_process_group: {url.scheme}:// needs {name}", hint=f"pass {name}={actual}")
        if claim is not None and claim[1] != actual:
            raise ArgumentError(f"init_process_group: {claim[0]}, but MPI has {actual}", hint=_hint(*claim, job))


def _claim(name: str, scheme: str, query: Mapping[str, str]) -> tuple[str, int] | None:
    """Return the value in the URL or else the environment: its description and the number."""
    variable = name.upper()
    if name in query:
        return f"{name}={query[name]} in init_method", _number(query[name], f"{name} in init_method")
    if scheme == "env" and variable in os.environ:
        value = os.environ[variable]
        return f"the environment has {variable}={value}", _number(value, f"the environment variable {variable}")
    return None


def _number(text: str, what: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ArgumentError(f"init_process_group: {what} is not a number: {text!r}", hint="omit it") from None


def _hint(claim: str, number: int, job: World) -> str:
    if not is_launched():
        count = os.environ.get("WORLD_SIZE", number if "world_size" in claim else 4)
        return (
            "start all processes together with MPI, which torchrun does not do: "
            f"python -m tallow.distributed.run -n {count} script.py, or mpiexec -n {count} python script.py"
        )
    if "environment" in claim:
        return "unset RANK and WORLD_SIZE: MPI provides them, and python -m tallow.distributed.run sets both"
    return f"omit it: MPI has started {job.size} processes, as given by -n of mpiexec"
