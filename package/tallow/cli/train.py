"""`tallow train`: train a language model on texts, in one process or in several.

Without --model it is a new Llama, which reads bytes, or with --vocab pieces learnt from the texts. Ctrl-C, SIGTERM and
SIGHUP stop after a step, and --resume goes on to the weights that a run without a break ends with. The folder is one
that `tallow generate --model` and transformers read.

Several processes share out each batch, and end with the weights of one, but for rounding:

    mpiexec -n 4 tallow train books/ --out model
    python -m tallow.distributed.run -n 4 -m tallow train books/ --out model

The second finds mpiexec by itself, and leaves each process one thread, as OMP_NUM_THREADS=1 does for the first. All
processes see the same folders; with --device cuda each takes a GPU of its own.
"""

from __future__ import annotations

import argparse
import math
import signal
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from tallow import dtypes
from tallow.cli.device import add_device_option
from tallow.cli.language_model import DTYPES, load_language_model, number
from tallow.cli.terminal import report
from tallow.errors import ArgumentError
from tallow.hub import local_model
from tallow.models.causal_lm import CausalLM
from tallow.models.config import CONFIG
from tallow.models.llama import Llama, LlamaConfig
from tallow.random import manual_seed
from tallow.training import vocabulary
from tallow.training.export import export
from tallow.training.language_modelling import LanguageModelSettings, LanguageModelTraining
from tallow.training.plot import check_plot, plot_losses
from tallow.training.processes import Processes
from tallow.training.progress import Stop, follow, interruption, sparkline
from tallow.training.texts import Rows, Tokens, documents, tokens_of
from tallow.training.vocabulary import Vocabulary

CHECKPOINT = "checkpoint.safetensors"
SIZES = {"width": 256, "layers": 4, "heads": 4}  # of a new model
CONTEXT = 256
LEARNING_RATES = {True: 1e-3, False: 5e-5}  # of a new model, and of one that has learnt
INNER_MULTIPLE = 16
SIGNALLED = 128  # the exit status of what a signal has stopped, and its number

whole = number(int, "0 or more", lambda n: n >= 0)
positive = number(int, "1 or more", lambda n: n >= 1)
not_negative = number(float, "0 or more", lambda x: 0 <= x < math.inf)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "texts",
        nargs="+",
        type=Path,
        metavar="TEXT",
        help="a file in UTF-8, or a folder with .txt files in it; <|endoftext|> may stand between texts of a file",
    )
    parser.add_argument("--out", required=True, type=Path, metavar="DIR", help="the folder of the model and of the run")
    parser.add_argument("--resume", action="store_true", help="go on from the checkpoint in --out, with equal options")
    _add_model_options(parser.add_argument_group("model"))
    _add_training_options(parser.add_argument_group("training"))
    _add_running_options(parser.add_argument_group("running"))


def _add_model_options(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--model", metavar="MODEL", help="go on from this one: a folder, or owner/repository (default: a new one)"
    )
    for name, size in SIZES.items():
        group.add_argument(f"--{name}", type=positive, metavar="N", help=f"of a new model (default: {size})")
    group.add_argument(
        "--context",
        type=positive,
        metavar="N",
        help=f"tokens of a row; the most that a new model can read (default: {CONTEXT}, or as --model if that is less)",
    )
    tokens = group.add_mutually_exclusive_group()
    tokens.add_argument(
        "--vocab",
        type=number(int, "257 or more: the bytes and a mark", lambda n: n > vocabulary.BYTES),
        metavar="N",
        help="learn so many pieces from the texts; needs the extra train (default: 256 bytes and a mark)",
    )
    tokens.add_argument("--tokenizer", type=Path, metavar="PATH", help="a tokenizer.json, or a folder with one")


def _add_training_options(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--steps", type=positive, default=1000, metavar="N", help="default: %(default)s")
    group.add_argument(
        "--batch-size",
        type=positive,
        default=16,
        metavar="N",
        help="rows of a step, in all processes together (default: %(default)s)",
    )
    group.add_argument(
        "--accumulate",
        type=positive,
        default=1,
        metavar="N",
        help="compute a process's rows in so many parts, which takes less memory (default: %(default)s)",
    )
    rates = LEARNING_RATES
    group.add_argument(
        "--learning-rate",
        type=number(float, "above 0", lambda x: 0 < x < math.inf),
        metavar="X",
        help=f"the highest; it falls to a tenth (default: {rates[True]:g}, with --model {rates[False]:g})",
    )
    group.add_argument(
        "--warmup",
        type=whole,
        metavar="N",
        help="steps in which it rises (default: a tenth, at most 100)",
    )
    group.add_argument(
        "--weight-decay", type=not_negative, default=0.1, metavar="X", help="of matrices (default: %(default)s)"
    )
    group.add_argument(
        "--clip",
        type=number(float, "above 0", lambda x: x > 0),
        default=1.0,
        metavar="X",
        help="the most that the norm of the gradients may be; inf for no limit (default: %(default)s)",
    )
    group.add_argument(
        "--dtype",
        choices=DTYPES,
        default=dtypes.float32.name,
        help="multiply matrices in this; weights are float32 (default: %(default)s)",
    )
    group.add_argument("--seed", type=whole, default=1, metavar="N", help="default: %(default)s")


def _add_running_options(group: argparse._ArgumentGroup) -> None:
    add_device_option(group)
    group.add_argument("--eval", type=Path, metavar="TEXT", help="texts to take the loss of that are not learnt from")
    for name, default, what in (("eval", 250, "evaluate"), ("save", 250, "save"), ("log", 10, "print the loss")):
        group.add_argument(
            f"--{name}-every",
            type=positive,
            default=default,
            metavar="N",
            help=f"steps after which to {what} (default: %(default)s)",
        )
    group.add_argument(
        "--plot",
        type=Path,
        metavar="FILE",
        help="draw the loss there at the end, as .png, .svg or .pdf; needs the extra plot",
    )


def run(arguments: argparse.Namespace) -> int:
    """Train.

    Returns:  0 at the end of the run; 128 and the signal's number where SIGTERM or SIGHUP has stopped it
    Raises:  TallowError, OSError for what cannot be used; KeyboardInterrupt once a run that Ctrl-C has stopped is saved
    """
    if arguments.plot is not None:
        check_plot(arguments.plot)
    processes = Processes.join()
    is_first = processes.rank == 0
    device = processes.device(arguments.device)
    if is_first:
        _claim(arguments.out, arguments.resume)
    model = _known_model(arguments, device)
    corpus = _corpus(arguments, model, processes)
    if model is None:
        model = _new_model(arguments, corpus, device)
    training = _training(arguments, model, corpus, processes)
    if is_first:
        parameters = sum(each.numel() for each in model.parameters())
        where = f" in {processes.size} processes" if processes.size > 1 else ""
        report(f"{parameters} parameters, {len(corpus.tokens)} tokens{where}; from step {training.step}")
    with interruption() as stop:  # a signal that comes while the model is written waits for that
        finished = _follow(training, arguments, stop, quiet=not is_first)
        if is_first:
            export(model, arguments.out)
            going_on = "" if finished else "; go on with --resume"
            report(f"{arguments.out} has the model of step {training.step}{_curve(training)}{going_on}")
        processes.wait()
    if finished:
        return 0
    if stop.signal in (None, signal.SIGINT):  # None in processes that others have told to stop
        raise KeyboardInterrupt
    return SIGNALLED + stop.signal


def _follow(training: LanguageModelTraining, arguments: argparse.Namespace, stop: Stop, *, quiet: bool) -> bool:
    """Take the remaining steps; whether the run has come to its end. The plot is drawn however it ends."""
    try:
        return follow(
            training, _describe, every=arguments.log_every, tokens=training.tokens_per_step, quiet=quiet, stop=stop
        )
    finally:
        if arguments.plot is not None and not quiet:
            plot_losses(training, ("loss",), arguments.plot)
            report(f"{arguments.plot} shows the loss")


def _curve(training: LanguageModelTraining) -> str:
    """How the loss went, in words and, where stderr can print it, as a line of blocks."""
    losses = [row[1] for row in training.history]
    if not losses:
        return ""
    line = f" {sparkline(losses)}"
    try:
        line.encode(sys.stderr.encoding or "ascii")
    except UnicodeEncodeError:
        line = ""
    return f"; loss {losses[0]:.4f} to {losses[-1]:.4f}{line}"


def _claim(out: Path, resume: bool) -> None:
    """Make the folder, and see that no other run or model is in it."""
    out.mkdir(parents=True, exist_ok=True)
    held = [name for name in (CHECKPOINT, CONFIG) if (out / name).exists()]
    if resume and CHECKPOINT not in held:
        raise ArgumentError(f"{out} has no {CHECKPOINT} to go on from", mend="leave out --resume")
    if held and not resume:
        raise ArgumentError(f"{out} has a {held[0]} already", mend="go on with --resume, or choose another folder")


def _known_model(arguments: argparse.Namespace, device: str) -> CausalLM | None:
    """What --model names."""
    if arguments.model is None:
        return None
    for name in (*SIZES, "vocab", "tokenizer"):
        if getattr(arguments, name) is not None:
            raise ArgumentError(f"--{name} with --model", mend="the model has sizes and a vocabulary of its own")
    folder = local_model(arguments.model)
    if folder.is_file():
        raise ArgumentError(f"{folder} is a file", mend="make a folder of it: tallow convert FILE FOLDER")
    return load_language_model(str(folder), dtypes.float32.name, device)


@dataclass(frozen=True)
class _Corpus:
    """What is learnt from, and evaluated on, in tokens of a vocabulary that has `size` ids and maybe a mark."""

    size: int
    mark: int | None
    tokens: Tokens
    held_out: Tokens | None


def _corpus(arguments: argparse.Namespace, model: CausalLM | None, processes: Processes) -> _Corpus:
    """Rank 0 reads the texts, and tells the others."""
    words = _vocabulary(arguments, model) if processes.rank == 0 else None

    def tokens(*paths: Path) -> Tokens | None:
        return tokens_of(documents(paths), words) if words is not None and all(paths) else None

    size, mark = processes.tell(None if words is None else (words.size, words.mark))
    learnt_from, held_out = processes.tell_array(tokens(*arguments.texts)), processes.tell_array(tokens(arguments.eval))
    assert learnt_from is not None
    if model is not None and max(learnt_from.max(), 0 if held_out is None else held_out.max()) >= model.vocab_size:
        raise ArgumentError(
            f"the tokenizer of {model.folder} has {size} tokens, its model {model.vocab_size}",
            mend="take the tokenizer that belongs to the model",
        )
    return _Corpus(size, mark, learnt_from, held_out)


def _new_model(arguments: argparse.Namespace, corpus: _Corpus, device: str) -> Llama:
    width, layers, heads = (getattr(arguments, name) or size for name, size in SIZES.items())
    config = LlamaConfig(
        vocab_size=corpus.size,
        hidden_size=width,
        # Three matrices in place of two: Shazeer 2020, arXiv:2002.05202, section 3
        intermediate_size=math.ceil(8 * width / 3 / INNER_MULTIPLE) * INNER_MULTIPLE,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=heads,
        max_position_embeddings=arguments.context or CONTEXT,
        tie_word_embeddings=True,
        bos_token_id=corpus.mark or 0,
        eos_token_id=() if corpus.mark is None else (corpus.mark,),
    )
    manual_seed(arguments.seed)
    return Llama(config, device=device)


def _vocabulary(arguments: argparse.Namespace, model: CausalLM | None) -> Vocabulary:
    """What the texts are told in; a new model's is written to its folder."""
    out = arguments.out
    if model is not None:
        assert model.folder is not None
        return vocabulary.read(model.folder)
    if arguments.tokenizer is None and arguments.vocab is None:
        return vocabulary.of_bytes() if arguments.resume else vocabulary.write_bytes(out)
    if arguments.resume:
        return vocabulary.read(out)
    if arguments.tokenizer is not None:
        return vocabulary.copy(arguments.tokenizer, out)
    return vocabulary.write_learnt(documents(arguments.texts), arguments.vocab, out)


def _training(
    arguments: argparse.Namespace, model: CausalLM, corpus: _Corpus, processes: Processes
) -> LanguageModelTraining:
    """The run, as it begins or as it was left."""
    context = arguments.context or min(CONTEXT, model.context_length)
    if context > model.context_length:
        raise ArgumentError(f"--context {context}; the model reads {model.context_length} tokens")
    rows = Rows(corpus.tokens, context, arguments.seed)
    rate = arguments.learning_rate or LEARNING_RATES[arguments.model is None]
    settings = LanguageModelSettings(
        seed=arguments.seed,
        steps=arguments.steps,
        batch_size=arguments.batch_size,
        learning_rate=rate,
        final_learning_rate=rate / 10,
        warmup_steps=min(100, arguments.steps // 10) if arguments.warmup is None else arguments.warmup,
        weight_decay=arguments.weight_decay,
        clip_norm=arguments.clip,
        validate_every=arguments.eval_every,
        checkpoint_every=arguments.save_every,
        context=context,
        dtype=arguments.dtype,
        model=asdict(model.config),
        texts=rows.digest(),
    )
    training = LanguageModelTraining(
        settings,
        model,
        rows,
        arguments.out / CHECKPOINT,
        processes,
        None if corpus.held_out is None else Rows(corpus.held_out, context),
        arguments.accumulate,
    )
    if arguments.resume:
        training.resume()
    else:
        training.save()  # now, rather than after hours, it is known whether that can be written
    return training


def _describe(row: list[float]) -> str:
    step, loss, *held_out = row
    said = "".join(f", loss of --eval {each:.4f}, perplexity {np.exp(each):.2f}" for each in held_out)
    return f"after step {step:.0f}: mean loss {loss:.4f}{said}"
