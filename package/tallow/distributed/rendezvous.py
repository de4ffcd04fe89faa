"""Which rank of how many processes the program takes itself for: by its arguments, a URL, or the environment.

PyTorch brings processes together by what these say. Here MPI has done so already, and they have to agree with it:
torchrun, or a loop in a shell, starts processes that MPI knows nothing of, each of which would train alone.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from urllib.parse import parse_qsl, urlsplit

from tallow.distributed.mpi import World, is_launched
from tallow.errors import ArgumentError

SCHEMES = ("env", "tcp", "file")


def names_a_job() -> bool:
    """Whether the environment says that there are several processes, as torchrun's does."""
    return os.environ.get("WORLD_SIZE", "1") != "1"


def check_place(job: World, init_method: str | None, world_size: int, rank: int) -> None:
    """Compare what is said about this process with MPI's rank and size.

    Raises:  ArgumentError where they differ; for a URL of another kind; for tcp:// and file:// without rank and size
    """
    url = urlsplit("env://" if init_method is None else init_method)
    if url.scheme not in SCHEMES:
        raise ArgumentError(
            f"init_process_group: no rendezvous for init_method={init_method!r}",
            mend="leave it out: MPI brings the processes together",
        )
    query = dict(parse_qsl(url.query))
    for name, given, known in (("world_size", world_size, job.size), ("rank", rank, job.rank)):
        said = (f"{name}={given}", given) if given != -1 else _said(name, url.scheme, query)
        if said is None and url.scheme != "env":
            raise ArgumentError(f"init_process_group: {url.scheme}:// needs {name}", mend=f"pass {name}={known}")
        if said is not None and said[1] != known:
            raise ArgumentError(f"init_process_group: {said[0]}, and MPI says {known}", mend=_mend(*said, job))


def _said(name: str, scheme: str, query: Mapping[str, str]) -> tuple[str, int] | None:
    """What the URL says, or else the environment: in words, and as a number."""
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
        raise ArgumentError(f"init_process_group: {what} is not a number: {text!r}", mend="leave it out") from None


def _mend(words: str, number: int, job: World) -> str:
    if not is_launched():
        count = os.environ.get("WORLD_SIZE", number if "world_size" in words else 4)
        return (
            "start all processes together by MPI, which torchrun does not do: "
            f"python -m tallow.distributed.run -n {count} script.py, or mpiexec -n {count} python script.py"
        )
    if "environment" in words:
        return "unset RANK and WORLD_SIZE: MPI knows them, and python -m tallow.distributed.run sets both"
    return f"leave it out: MPI has started {job.size} processes, as -n of mpiexec says"
