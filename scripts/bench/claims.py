"""The claims of `bench.py`: the module of each, and what it takes from the command line."""

from __future__ import annotations

import shutil
from argparse import Namespace
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bench.places import Job

STORIES_15M = {"dim": 288, "hidden": 768, "layers": 6, "heads": 6, "vocab": 32000, "length": 256}


@dataclass(frozen=True)
class Claim:
    """A claim, measured by `measure` of its module in this folder.

    Attributes:
        options: the options of `measure` that are arguments of the command line, and the names of these.
        rivals: the attributes of the job that are arguments of the same name.
        threads: of the job, in place of the command line's.
        prepare: adds files to the job's folder.
    """

    module: str
    options: Mapping[str, str] = field(default_factory=dict)
    rivals: tuple[str, ...] = ()
    threads: int | None = None
    prepare: Callable[[Job, Namespace, Path], None] | None = None

    def job(self, arguments: Namespace, folder: Path) -> Job:
        """Return the job with the command line's arguments, its files in `folder`."""
        options = {"repeats": arguments.repeats}
        options |= {option: getattr(arguments, argument) for option, argument in self.options.items()}
        rivals = {name: getattr(arguments, name) for name in self.rivals}
        job = Job(self.module, options, threads=self.threads or arguments.threads, **rivals)
        if self.prepare:
            self.prepare(job, arguments, folder)
        return job


def _write_checkpoints(job: Job, arguments: Namespace, folder: Path) -> None:
    """Write checkpoints with random weights, and copy those of the command line."""
    from bench import quantised  # both import tallow, which other claims import in a fresh process
    from bench.llama import write_random_checkpoint

    write_random_checkpoint(folder / "random15M.bin", **STORIES_15M)
    job.checkpoints = ["random15M.bin"]
    for file_type in ("Q8_0", "Q4_0"):
        name = f"random15M-{file_type}.gguf"
        quantised.write_file(str(folder / name), file_type, **quantised.SIZES["stories15M"])
        job.checkpoints.append(name)
    for path in arguments.checkpoint:
        shutil.copy(path, folder)
        job.checkpoints.append(path.name)
    job.options["checkpoints"] = job.checkpoints


CLAIMS = {
    "attack": Claim("attack"),
    "chains": Claim("chains"),
    "data": Claim("data"),
    "decoding": Claim("decoding"),
    "embeddings": Claim("embeddings"),
    "fourier": Claim("fourier"),
    "generate": Claim("generate"),
    "images": Claim("images"),
    "import": Claim("imports"),
    "keras": Claim("keras_fit"),
    "large": Claim("large_ops"),
    "layers": Claim("layers"),
    "llama": Claim("llama", {"steps": "steps"}, ("run_c", "wllama"), prepare=_write_checkpoints),
    "loading": Claim("loading"),
    "matmul": Claim("matmul", rivals=("jax", "onnx")),
    "memory": Claim("memory"),
    "names": Claim("names"),
    "onnx": Claim("onnx_files"),
    "ops": Claim("ops"),
    "perplexity": Claim("perplexity"),
    "products": Claim("products"),
    "prompts": Claim("prompts"),
    "quantised": Claim("quantised"),
    "seq2seq": Claim("seq2seq"),
    "serve": Claim("serve", {"model": "model", "minutes": "minutes"}),
    "start": Claim("start", {"wllama": "wllama"}),
    "threads": Claim("threads", threads=2),
    "training": Claim("training", {"workloads": "workload"}),
    "whisper": Claim("whisper", {"tokens": "tokens"}, ("onnx",)),
}
