"""`tallow train`: train a language model on texts, in one or several processes.

Without --model, trains a new Llama on bytes, or with --vocab on a vocabulary learned from the texts. Ctrl-C,
SIGTERM and SIGHUP stop after the current step and save a checkpoint; --resume continues from it, and the final weights
match an uninterrupted run. `tallow generate --model` and transformers can load the output folder.

With --sft or --dpo, --model learns from samples instead, a JSON object on each line: texts ("text"), conversations
("messages"), answers to prompts ("prompt" and "completion"), or for --dpo pairs of answers ("prompt", "chosen" and
"rejected"). Prompts and answers are texts or messages. Of answers to prompts, the answers alone are learned.

With --lora, --model stays frozen, in its quantised blocks if it is a GGUF file, and the output folder contains an
adapter, for `tallow generate --model MODEL --adapter DIR` and peft.

Several processes split each batch; the result matches that of one process, up to rounding:

    mpiexec -n 4 tallow train books/ --out model
    python -m tallow.distributed.run -n 4 -m tallow train books/ --out model

The second command finds mpiexec itself and gives each process one thread, as OMP_NUM_THREADS=1 does for the first. All
processes must see the same folders; with --device cuda each uses its own GPU.
"""

from __future__ import annotations

import argparse
import errno
import math
import os
import signal
import sys
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from tallow import dtypes
from tallow.cli import samples
from tallow.cli.adapter import adapted, add_lora_options, lora_config
from tallow.cli.device import add_device_option
from tallow.cli.language_model import DTYPES, load_language_model, number, positive_int
from tallow.cli.terminal import report
from tallow.errors import ArgumentError, UnsupportedError
from tallow.hub import local_model
from tallow.io.atomic import made_folder
from tallow.models.causal_lm import CausalLM
from tallow.models.config import ADAPTER_CONFIG, CONFIG
from tallow.models.decoders.llama import Llama, LlamaConfig
from tallow.peft.config import LoraConfig
from tallow.peft.peft_model import PeftModel
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
SIZES = {"width": 256, "layers": 4, "heads": 4}  # of new models
CONTEXT = 256
NEW_RATE, TUNING_RATE = 1e-3, 5e-5  # learning rates of a new model, and of a pretrained one
ADAPTER_RATE = 2e-4  # as for models of 7 and 13 billion parameters in Dettmers et al. 2023, arXiv:2305.14314
INNER_MULTIPLE = 16
SIGNALLED = 128  # exit status of a run that a signal stopped, plus the signal's number

non_negative_int = number(int, "0 or more", lambda n: n >= 0)
non_negative = number(float, "0 or more", lambda x: 0 <= x < math.inf)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `tallow train`."""
    parser.add_argument(
        "texts",
        nargs="*",
        type=Path,
        metavar="TEXT",
        help="a UTF-8 file, or a folder of .txt files; <|endoftext|> separates texts within a file",
    )
    parser.add_argument(
        "--out", required=True, type=Path, metavar="DIR", help="folder for the model and the checkpoint"
    )
    parser.add_argument(
        "--resume", action="store_true", help="continue from the checkpoint in --out; pass the same options"
    )
    _add_model_options(parser.add_argument_group("model"))
    samples.add_options(parser.add_argument_group("samples, in place of TEXT"))
    add_lora_options(parser.add_argument_group("adapter"))
    _add_training_options(parser.add_argument_group("training"))
    _add_running_options(parser.add_argument_group("running"))


def _add_model_options(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--model",
        metavar="MODEL",
        help="model to fine-tune: a folder, owner/repository on the Hugging Face Hub, or with --lora a GGUF file "
        "(default: a new model)",
    )
    for name, size in SIZES.items():
        group.add_argument(f"--{name}", type=positive_int, metavar="N", help=f"{name} of a new model (default: {size})")
    group.add_argument(
        "--context",
        type=positive_int,
        metavar="N",
        help=f"tokens per row; the context length of a new model (default: {CONTEXT}, or that of --model if less)",
    )
    tokens = group.add_mutually_exclusive_group()
    tokens.add_argument(
        "--vocab",
        type=number(int, "257 or more: 256 bytes and <|endoftext|>", lambda n: n > vocabulary.BYTES),
        metavar="N",
        help="learn a vocabulary of at most N tokens from the texts; needs the extra train "
        "(default: bytes and <|endoftext|>)",
    )
    tokens.add_argument("--tokenizer", type=Path, metavar="PATH", help="a tokenizer.json, or a folder with one")


def _add_training_options(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--steps", type=positive_int, default=1000, metavar="N", help="training steps (default: %(default)s)"
    )
    group.add_argument(
        "--batch-size",
        type=positive_int,
        default=16,
        metavar="N",
        help="rows per step, over all processes (default: %(default)s)",
    )
    group.add_argument(
        "--accumulate",
        type=positive_int,
        default=1,
        metavar="N",
        help="split each process's rows into N parts to save memory (default: %(default)s)",
    )
    group.add_argument(
        "--learning-rate",
        type=number(float, "above 0", lambda x: 0 < x < math.inf),
        metavar="X",
        help=f"peak learning rate, which decays to a tenth (default: {NEW_RATE:g}, with --model {TUNING_RATE:g}, with "
        f"--lora {ADAPTER_RATE:g})",
    )
    group.add_argument(
        "--warmup",
        type=non_negative_int,
        metavar="N",
        help="steps over which the learning rate rises (default: a tenth of --steps, at most 100)",
    )
    group.add_argument(
        "--weight-decay",
        type=non_negative,
        default=0.1,
        metavar="X",
        help="weight decay of matrices (default: %(default)s)",
    )
    group.add_argument(
        "--clip",
        type=number(float, "above 0", lambda x: x > 0),
        default=1.0,
        metavar="X",
        help="maximum norm of the gradients; inf for no limit (default: %(default)s)",
    )
    group.add_argument(
        "--dtype",
        choices=DTYPES,
        default=dtypes.float32.name,
        help="dtype of matrix products; weights are float32 (default: %(default)s)",
    )
    group.add_argument(
        "--seed", type=non_negative_int, default=1, metavar="N", help="random seed (default: %(default)s)"
    )


def _add_running_options(group: argparse._ArgumentGroup) -> None:
    add_device_option(group)
    group.add_argument("--eval", type=Path, metavar="TEXT", help="validation texts: a file or a folder; or samples")
    for name, default, what in (("eval", 250, "evaluate"), ("save", 250, "save"), ("log", 10, "print the loss")):
        group.add_argument(
            f"--{name}-every",
            type=positive_int,
            default=default,
            metavar="N",
            help=f"{what} every N steps (default: %(default)s)",
        )
    group.add_argument(
        "--plot",
        type=Path,
        metavar="FILE",
        help="plot the loss to a .png, .svg or .pdf file at the end; needs the extra plot",
    )


def run(arguments: argparse.Namespace) -> int:
    """Train.

    Returns:  0 at the end of the run; 128 plus the signal's number if SIGTERM or SIGHUP stopped it
    Raises:  TallowError, OSError for invalid input; KeyboardInterrupt once a run that Ctrl-C stopped is saved
    """
    if arguments.plot is not None:
        check_plot(arguments.plot)
    config = lora_config(arguments)
    method = samples.method_of(arguments)
    if method is not None:
        return _train_samples(method, arguments, config)
    processes = Processes.join()
    is_first = processes.rank == 0
    device = processes.device(arguments.device)
    texts = _read_inputs(arguments) if is_first else None
    model = _known_model(arguments, device)
    adapter = adapted(model, config, arguments.seed)
    with made_folder(arguments.out) if is_first else nullcontext():
        corpus = _corpus(arguments, texts, model, processes)
        del texts
        if model is None:
            model = _new_model(arguments, corpus, device)
        training = _training(arguments, model, adapter, corpus, processes)
        if is_first:
            parameters = sum(each.numel() for each in model.parameters() if each.requires_grad)
            where = f" in {processes.size} processes" if processes.size > 1 else ""
            report(f"{parameters} parameters, {len(corpus.tokens)} tokens{where}; from step {training.step}")
        with interruption() as stop:  # a signal that arrives while the model is written is deferred
            finished = _follow(training, arguments, stop, quiet=not is_first)
            if is_first:
                if adapter is None:
                    export(model, arguments.out)
                else:
                    adapter.save_pretrained(arguments.out)
                to_resume = "" if finished else "; continue with --resume"
                what = "model" if adapter is None else "adapter"
                report(f"{arguments.out} has the {what} of step {training.step}{_curve(training)}{to_resume}")
            processes.wait()
    return 0 if finished else _status(stop)


def _train_samples(method: samples.Method, arguments: argparse.Namespace, adapter: LoraConfig | None) -> int:
    """Train on samples.  Returns, raises: as `run`"""
    if not arguments.resume:
        _check_out(arguments.out, arguments.resume)
    from tallow.cli import train_samples

    processes = Processes.join()
    if processes.size > 1:
        raise UnsupportedError(f"--{method.name} in {processes.size} processes", hint="train in one process")
    processes.device(arguments.device)  # which may be missing
    path = local_model(arguments.model)
    if path.is_file() and adapter is None:
        raise _frozen(path)
    rate, warmup = _schedule(arguments, adapts=adapter is not None)
    with made_folder(arguments.out):
        stop = train_samples.train(method, path, arguments, adapter, rate, warmup)
    report(f"{arguments.out} has the {'model' if adapter is None else 'adapter'}")
    return 0 if stop.signal is None else _status(stop)


def _schedule(arguments: argparse.Namespace, *, adapts: bool) -> tuple[float, int]:
    """Return the peak learning rate and the steps over which it rises.  Args: adapts: only an adapter is trained"""
    default_rate = NEW_RATE if arguments.model is None else ADAPTER_RATE if adapts else TUNING_RATE
    warmup = min(100, arguments.steps // 10) if arguments.warmup is None else arguments.warmup
    return arguments.learning_rate or default_rate, warmup


def _status(stop: Stop) -> int:
    """Return the exit status of a run that a signal ended.  Raises: KeyboardInterrupt for Ctrl-C"""
    if stop.signal in (None, signal.SIGINT):  # None in processes that other ranks told to stop
        raise KeyboardInterrupt
    return SIGNALLED + stop.signal


def _follow(training: LanguageModelTraining, arguments: argparse.Namespace, stop: Stop, *, quiet: bool) -> bool:
    """Take the remaining steps and return whether the run is complete. The plot is drawn even after an error."""
    try:
        return follow(
            training, _describe, every=arguments.log_every, tokens=training.tokens_per_step, quiet=quiet, stop=stop
        )
    finally:
        if arguments.plot is not None and not quiet:
            plot_losses(training, ("loss",), arguments.plot)
            report(f"{arguments.plot} shows the loss")


def _curve(training: LanguageModelTraining) -> str:
    """Return the loss curve as text, with a sparkline if stderr can print it."""
    losses = [row[1] for row in training.history]
    if not losses:
        return ""
    line = f" {sparkline(losses)}"
    try:
        line.encode(sys.stderr.encoding or "ascii")
    except UnicodeEncodeError:
        line = ""
    return f"; loss {losses[0]:.4f} to {losses[-1]:.4f}{line}"


@dataclass(frozen=True)
class _Texts:
    """Training and validation texts. They are read once, as a path may be a pipe."""

    training: list[str]
    validation: list[str] | None


def _read_inputs(arguments: argparse.Namespace) -> _Texts:
    """Check the paths and read the texts, before anything is written.

    Raises:  ArgumentError if --out contains another run or model, or no run to resume; DatasetError, OSError for texts
             that are missing or not UTF-8
    """
    _check_out(arguments.out, arguments.resume)
    if arguments.tokenizer is not None and not arguments.tokenizer.exists():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(arguments.tokenizer))
    return _Texts(
        list(documents(arguments.texts)), None if arguments.eval is None else list(documents([arguments.eval]))
    )


def _check_out(out: Path, resume: bool) -> None:
    existing = [name for name in (CHECKPOINT, CONFIG, ADAPTER_CONFIG) if (out / name).exists()]
    if resume and CHECKPOINT not in existing:
        raise ArgumentError(f"{out} has no {CHECKPOINT} to resume", hint="omit --resume")
    if existing and not resume:
        raise ArgumentError(
            f"{out} already has a {existing[0]}", hint="continue with --resume, or choose another folder"
        )


def _known_model(arguments: argparse.Namespace, device: str) -> CausalLM | None:
    """Load the model that --model names, if any."""
    if arguments.model is None:
        return None
    for name in (*SIZES, "vocab", "tokenizer"):
        if getattr(arguments, name) is not None:
            raise ArgumentError(f"--{name} with --model", hint="omit it: the model has its own sizes and vocabulary")
    path = local_model(arguments.model)
    if not path.is_file():
        return load_language_model(str(path), dtypes.float32.name, device)
    if not arguments.lora:
        raise _frozen(path)
    return load_language_model(str(path), None, device)


def _frozen(path: Path) -> ArgumentError:
    return ArgumentError(
        f"{path} is a file, whose weights cannot be trained",
        hint="train an adapter with --lora, or convert it to a folder: tallow convert FILE FOLDER",
    )


@dataclass(frozen=True)
class _Corpus:
    """Training and validation tokens, and the vocabulary's size and end-of-text id, if it has one."""

    size: int
    end_of_text: int | None
    tokens: Tokens
    validation_tokens: Tokens | None


def _corpus(
    arguments: argparse.Namespace, texts: _Texts | None, model: CausalLM | None, processes: Processes
) -> _Corpus:
    """Encode the texts, which rank 0 has, and broadcast the tokens."""
    words = training_tokens = validation_tokens = None
    if texts is not None:
        words = _vocabulary(arguments, texts.training, model)
        training_tokens = tokens_of(texts.training, words)
        validation_tokens = None if texts.validation is None else tokens_of(texts.validation, words)
    size, end_of_text = processes.broadcast(None if words is None else (words.size, words.end_of_text))
    training_tokens = processes.broadcast_array(training_tokens)
    validation_tokens = processes.broadcast_array(validation_tokens)
    assert training_tokens is not None
    highest = max(training_tokens.max(), 0 if validation_tokens is None else validation_tokens.max())
    if model is not None and highest >= model.vocab_size:
        raise ArgumentError(
            f"the tokenizer of {model.folder} has {size} tokens, but the model has {model.vocab_size}",
            hint="use the tokenizer that the model was trained with",
        )
    return _Corpus(size, end_of_text, training_tokens, validation_tokens)


def _new_model(arguments: argparse.Namespace, corpus: _Corpus, device: str) -> Llama:
    width, layers, heads = (getattr(arguments, name) or size for name, size in SIZES.items())
    if width % (2 * heads):
        raise ArgumentError(
            f"--width {width} with --heads {heads}: the width of a head must be a whole, even number",
            hint=f"pass a --width that is a multiple of {2 * heads}",
        )
    config = LlamaConfig(
        vocab_size=corpus.size,
        hidden_size=width,
        # Three matrices instead of two: Shazeer 2020, arXiv:2002.05202, section 3
        intermediate_size=math.ceil(8 * width / 3 / INNER_MULTIPLE) * INNER_MULTIPLE,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=heads,
        max_position_embeddings=arguments.context or CONTEXT,
        tie_word_embeddings=True,
        bos_token_id=corpus.end_of_text or 0,
        eos_token_id=() if corpus.end_of_text is None else (corpus.end_of_text,),
    )
    manual_seed(arguments.seed)
    return Llama(config, device=device)


def _vocabulary(arguments: argparse.Namespace, texts: list[str], model: CausalLM | None) -> Vocabulary:
    """Return the vocabulary. That of a new model is also written to its folder."""
    out = arguments.out
    if model is not None:
        assert model.folder is not None
        return vocabulary.read(model.folder)
    if arguments.tokenizer is None and arguments.vocab is None:
        return vocabulary.byte_vocabulary() if arguments.resume else vocabulary.write_byte_vocabulary(out)
    if arguments.resume:
        return vocabulary.read(out)
    if arguments.tokenizer is not None:
        return vocabulary.copy(arguments.tokenizer, out)
    learned = vocabulary.write_learned(texts, arguments.vocab, out)
    if learned.size < arguments.vocab:
        report(
            f"the vocabulary has {learned.size} tokens, not {arguments.vocab}: the texts have no more pairs to merge"
        )
    return learned


def _training(
    arguments: argparse.Namespace,
    model: CausalLM,
    adapter: PeftModel | None,
    corpus: _Corpus,
    processes: Processes,
) -> LanguageModelTraining:
    """Return the run, at its start or resumed."""
    context = arguments.context or min(CONTEXT, model.context_length)
    if context > model.context_length:
        raise ArgumentError(f"--context {context} exceeds the model's context of {model.context_length} tokens")
    rows = Rows(corpus.tokens, context, arguments.seed)
    rate, warmup = _schedule(arguments, adapts=adapter is not None)
    settings = LanguageModelSettings(
        seed=arguments.seed,
        steps=arguments.steps,
        batch_size=arguments.batch_size,
        learning_rate=rate,
        final_learning_rate=rate / 10,
        warmup_steps=warmup,
        weight_decay=arguments.weight_decay,
        clip_norm=arguments.clip,
        validate_every=arguments.eval_every,
        checkpoint_every=arguments.save_every,
        context=context,
        dtype=arguments.dtype,
        model=asdict(model.config),
        adapter=None if adapter is None else _settings_of(adapter),
        texts=rows.digest(),
    )
    training = LanguageModelTraining(
        settings,
        model,
        rows,
        arguments.out / CHECKPOINT,
        processes,
        None if corpus.validation_tokens is None else Rows(corpus.validation_tokens, context),
        arguments.accumulate,
    )
    if arguments.resume:
        training.resume()
    else:
        training.save()  # fail now rather than after hours if it cannot be written
    return training


def _settings_of(adapter: PeftModel) -> dict[str, Any]:
    """Return the entries of an adapter's config that determine a run: not the path of its model."""
    return asdict(replace(adapter.peft_config[adapter.active_adapter], base_model_name_or_path=None))


def _describe(row: list[float]) -> str:
    step, loss, *validation = row
    evaluation = "".join(f", validation loss {each:.4f}, perplexity {np.exp(each):.2f}" for each in validation)
    return f"after step {step:.0f}: mean loss {loss:.4f}{evaluation}"
