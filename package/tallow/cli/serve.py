"""`tallow serve`: answer requests for text, embeddings and transcripts over HTTP.

It speaks the APIs of OpenAI and of Hugging Face's servers: text-generation-inference, text-embeddings-inference.

Without options, it serves three small built-in models: one tells stories, one computes embeddings of English words, and
one transcribes a hundred words. Needs the packages of the extra `serve`; embeddings need those of the extra `text`.

    tallow serve --model Qwen/Qwen3-0.6B --embed sentence-transformers/all-MiniLM-L6-v2
    curl http://127.0.0.1:8000/v1/chat/completions -d '{"messages": [{"role": "user", "content": "Hello!"}]}'

Several processes that mpiexec has started divide a Llama among them, which need not fit in the memory of one:

    mpiexec -n 2 tallow serve --model FOLDER

Ctrl-C and SIGTERM end it: it takes no more requests and finishes those in progress. The log, on stderr, has no text of
requests without --log-requests.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import tallow
from tallow.cli.language_model import add_cache_option, add_loading_options, load_language_model, number, positive_int
from tallow.cli.patient_stderr import patient_stderr
from tallow.cli.terminal import report, unusable_address
from tallow.distributed.mpi import is_launched, world
from tallow.errors import ArgumentError, MissingPackageError
from tallow.generation.prefix_pages import PAGE
from tallow.generation.slots import Slots, open_slots
from tallow.io.regular import regular
from tallow.kernels import library
from tallow.models.causal_lm import CACHE_DTYPES, CausalLM
from tallow.models.encoders.sentence import SentenceEncoder
from tallow.models.encoders.sparse_encoder import SparseEncoder
from tallow.models.encoders.text_classifier import TextClassifier
from tallow.models.whisper import Whisper
from tallow.onnx.loading import load as load_onnx
from tallow.serving.catalog import GLOSSES, Catalog, built_in_encoder, built_in_speech, built_in_texts
from tallow.serving.encoding import embedder, labeller, weigher
from tallow.serving.engine import TextEngine
from tallow.serving.http.limits import NO_DEADLINES, Deadlines, room
from tallow.serving.http.listener import listen, listen_at
from tallow.serving.replicas import SOCKET, TIMEOUT_S, Replicas, end_with_parent
from tallow.serving.speaking import SpeakingWorker
from tallow.serving.speech import SpeechWorker
from tallow.serving.tensors import TensorWorker
from tallow.serving.text_model import TextModel
from tallow.site.server_pages import server_pages

KEY_VARIABLE = "TALLOW_API_KEY"
LOOPBACK = ("127.0.0.1", "localhost", "::1")
PREFIX_MIB = 512
LENGTH = 4096  # the most tokens of a text by default, which bounds the memory of keys and values

PRIVATE, SHARED, OFF = "private", "shared", "off"


def _prefix_cache(text: str) -> str | int:
    """Return a mode of --prefix-cache, or the MiB of a private one."""
    if text in (PRIVATE, SHARED, OFF):
        return text
    return number(int, f"{PRIVATE}, {SHARED}, {OFF}, or 0 or more MiB", lambda n: n >= 0)(text)


def _named_file(text: str) -> tuple[str, str]:
    """Return the name and the file of --onnx."""
    name, _, file = text.partition("=")
    if not re.fullmatch(r"[\w.-]+", name) or not file:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=FILE, with a name of letters, digits, '.', '-' and '_'")
    return name, file


def _prefix_mib(arguments: argparse.Namespace) -> int:
    mode = arguments.prefix_cache
    return mode if isinstance(mode, int) else 0 if mode == OFF else arguments.prefix_cache_mib


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `tallow serve`."""
    _add_model_options(
        parser.add_argument_group("models", "Each is a folder, or owner/repository on the Hugging Face Hub.")
    )
    _add_limits(parser.add_argument_group("limits"))
    _add_server_options(parser.add_argument_group("server"))


def _add_model_options(models: argparse._ArgumentGroup) -> None:
    models.add_argument("-m", "--model", metavar="MODEL", help="a language model, or a GGUF file with one")
    models.add_argument("--embed", metavar="MODEL", help="a sentence encoder for embeddings, or a GGUF file with one")
    models.add_argument(
        "--rerank", metavar="MODEL", help="a cross-encoder, or another classifier of texts, for /rerank and /predict"
    )
    models.add_argument("--sparse", metavar="MODEL", help="a SPLADE model for /embed_sparse")
    models.add_argument("--transcribe", metavar="MODEL", help="a Whisper model for transcripts")
    models.add_argument("--speak", metavar="MODEL", help="a VITS for /v1/audio/speech")
    models.add_argument(
        "--onnx",
        metavar="NAME=FILE",
        action="append",
        default=[],
        type=_named_file,
        help="an ONNX model for /v2/models/NAME/infer; may be given several times",
    )
    add_loading_options(models)


def _add_limits(limits: argparse._ArgumentGroup) -> None:
    limits.add_argument(
        "--slots", metavar="N", type=positive_int, default=8, help="texts to generate at once (default: %(default)s)"
    )
    limits.add_argument(
        "--queue",
        metavar="N",
        type=positive_int,
        default=128,
        help="requests of a client that may wait (default: %(default)s)",
    )
    limits.add_argument(
        "--length",
        metavar="N",
        type=positive_int,
        help=f"the most tokens of a text, prompt included (default: the model's context, at most {LENGTH})",
    )
    limits.add_argument(
        "--prefix-cache",
        metavar="MODE",
        type=_prefix_cache,
        default=PRIVATE,
        help="which prompts with the same beginning use the keys and values of a prompt: private for those of the same "
        "client, shared for all, off for none; or the MiB of --prefix-cache-mib (default: %(default)s)",
    )
    limits.add_argument(
        "--prefix-cache-mib",
        metavar="N",
        type=positive_int,
        default=PREFIX_MIB,
        help="memory for keys and values of prompts (default: %(default)s)",
    )
    limits.add_argument(
        "--report-cached-tokens",
        action="store_true",
        help="tell clients how much of a prompt was known also with --prefix-cache shared, where it confirms guesses",
    )
    limits.add_argument(
        "--time-limit",
        metavar="S",
        type=positive_int,
        help="end a text after S seconds, and refuse requests that wait for longer (default: no limit)",
    )
    limits.add_argument(
        "--max-body",
        metavar="MIB",
        type=positive_int,
        default=32,
        help="the largest request with a file (default: %(default)s)",
    )
    limits.add_argument(
        "--max-json",
        metavar="MIB",
        type=positive_int,
        default=4,
        help="the largest other request (default: %(default)s)",
    )
    _add_connection_options(limits)
    add_cache_option(limits)
    limits.add_argument(
        "--batch-invariant",
        action="store_true",
        help="compute each text to the same bits whoever else is served; a single text takes longer",
    )


def _add_server_options(server: argparse._ArgumentGroup) -> None:
    server.add_argument(
        "--replicas",
        metavar="N",
        type=positive_int,
        default=1,
        help="processes with the models, behind one address; they share the processors (default: %(default)s)",
    )
    server.add_argument(
        "--replica-timeout",
        metavar="S",
        type=positive_int,
        default=TIMEOUT_S,
        help="start a replica again that has not answered for S seconds, or computes a step for ten times as long "
        "(default: %(default)g)",
    )
    server.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    server.add_argument(
        "--port",
        metavar="N",
        type=number(int, "0 to 65535", lambda n: 0 <= n <= 65535),
        default=8000,
        help="port; 0 chooses a free one (default: %(default)s)",
    )
    server.add_argument(
        "--api-key",
        metavar="KEY",
        action="append",
        help="key that clients must send; may be given several times, and tells clients apart then "
        f"(default: those of the variable {KEY_VARIABLE}, divided by commas, or none)",
    )
    server.add_argument(
        "--priority", action="store_true", help="obey the field priority of requests, which is refused otherwise"
    )
    server.add_argument(
        "--cors", metavar="ORIGIN", action="append", default=[], help="a page's origin that may call the server"
    )
    server.add_argument("--tls-certificate", metavar="FILE", help="certificate in PEM, for HTTPS")
    server.add_argument("--tls-key", metavar="FILE", help="the certificate's private key in PEM")
    server.add_argument(
        "--strict-fields", action="store_true", help="refuse requests with unknown fields, which are ignored otherwise"
    )
    server.add_argument("--warmup", action="store_true", help="compute with each model before /ready answers 200")
    server.add_argument(
        "--drain-timeout",
        metavar="S",
        type=positive_int,
        default=30,
        help="the most seconds to finish requests in progress at the end (default: %(default)s)",
    )
    server.add_argument(
        "--log-level", choices=("debug", "info", "warning", "error"), default="info", help="(default: %(default)s)"
    )
    server.add_argument("--log-requests", action="store_true", help="log the text of requests, prompts included")


def _add_connection_options(limits: argparse._ArgumentGroup) -> None:
    limits.add_argument(
        "--connections",
        metavar="N",
        type=positive_int,
        help="connections at once; further ones are refused (default: half of the files that a process may open)",
    )
    limits.add_argument(
        "--connections-per-address",
        metavar="N",
        type=positive_int,
        help="connections of one address; behind a proxy all have the proxy's (default: half of --connections)",
    )
    waits = {
        "head": "for the head of a request",
        "body": "for the body of a request",
        "write": "for a client that takes nothing of its answer",
        "idle": "for another request on a connection",
    }
    for name, what in waits.items():
        limits.add_argument(
            f"--{name}-timeout",
            metavar="S",
            type=number(float, "a number above 0", lambda s: s > 0),
            default=getattr(Deadlines, f"{name}_s"),
            help=f"seconds to wait {what} (default: %(default)g)",
        )


def run(arguments: argparse.Namespace) -> int:
    """Serve until SIGTERM or Ctrl-C.

    Raises:  TallowError, OSError for invalid input; KeyboardInterrupt after Ctrl-C
    """
    with patient_stderr() as drain_stderr:
        return _run(arguments, drain_stderr)


def _run(arguments: argparse.Namespace, on_end: Callable[[], None]) -> int:
    try:
        from tallow.serving.http.app import make_app
        from tallow.serving.http.application import Access
        from tallow.serving.http.front import make_front
        from tallow.serving.http.pages import Pages
        from tallow.serving.http.server import serve
    except ModuleNotFoundError as error:
        raise MissingPackageError(str(error.name), "tallow serve", "serve") from error
    if (arguments.tls_key is None) != (arguments.tls_certificate is None):
        raise ArgumentError("--tls-certificate and --tls-key belong together", hint="pass both or neither")
    for path in filter(None, (arguments.tls_key, arguments.tls_certificate)):
        open(path, "rb", opener=regular).close()  # the module ssl waits for pipes, and its errors do not name the file
    ends = {"drain_timeout_s": arguments.drain_timeout, "log_level": arguments.log_level, "on_end": on_end}
    free = room(arguments.connections, arguments.connections_per_address)
    deadlines = Deadlines(
        arguments.head_timeout, arguments.body_timeout, arguments.write_timeout, arguments.idle_timeout
    )
    app_options = {
        "warmup": arguments.warmup,
        "version": tallow.__version__,
        "strict_fields": arguments.strict_fields,
        "pages": Pages(server_pages),
    }
    if (path := os.environ.pop(SOCKET, None)) is not None:
        limits = {"most_bytes": arguments.max_body << 20, "most_json": arguments.max_json << 20}
        app = make_app(load(arguments), Access(**limits, is_replica=True), **app_options)
        listener = listen_at(path, free)
        end_with_parent(path)
        serve(app, listener, deadlines=NO_DEADLINES, **ends | {"log_level": "error"})  # its only client is the front
        return 0
    load_catalog = partial(load, arguments)
    if is_launched() and world().size > 1:
        from tallow.cli import divided
        from tallow.serving.divided import open_divided_slots

        if divided.join(arguments) > 0:
            model = divided.load(arguments)
            divided.follow(model, **_slot_options(arguments, model))
            return 0
        load_catalog = partial(load, arguments, divided.load, open_divided_slots)
    try:  # before a model is loaded
        listener = listen(arguments.host, arguments.port, free, says_why=arguments.tls_key is None)
    except (OSError, UnicodeError) as error:
        raise unusable_address(arguments.host, arguments.port, error) from error
    with listener:  # closed if a model cannot be loaded
        access = Access(
            tuple(arguments.api_key or filter(None, os.environ.get(KEY_VARIABLE, "").split(","))),
            arguments.max_body << 20,
            arguments.max_json << 20,
            tuple(arguments.cors),
            LOOPBACK if arguments.host in LOOPBACK else None,
            arguments.log_requests,
        )
        if arguments.replicas > 1:
            replicas = Replicas(
                arguments.replicas, [sys.executable, "-m", "tallow", *sys.argv[1:]], arguments.replica_timeout
            )
            replicas.start()
            app = make_front(replicas, access, shares_prefixes=arguments.prefix_cache == SHARED)
        else:
            app = make_app(load_catalog(), access, **app_options)
        _report_address(arguments, listener.getsockname()[1], has_key=bool(access.api_keys))
        serve(app, listener, deadlines=deadlines, **ends, certificate=arguments.tls_certificate, key=arguments.tls_key)
    return 0


def _report_address(arguments: argparse.Namespace, port: int, *, has_key: bool) -> None:
    if not has_key and arguments.host not in LOOPBACK:
        report(f"tallow serve: warning: anybody who reaches {arguments.host} can use this server; --api-key sets a key")
    scheme = "http" if arguments.tls_key is None else "https"
    name = f"[{arguments.host}]" if ":" in arguments.host else arguments.host
    report(f"serving on {scheme}://{name}:{port}/v1 (a page is at {scheme}://{name}:{port}/)")


def _text_model(arguments: argparse.Namespace) -> CausalLM:
    return load_language_model(arguments.model, arguments.dtype, arguments.device, arguments.quant)


def load(
    arguments: argparse.Namespace,
    text_model: Callable[[argparse.Namespace], CausalLM] = _text_model,
    open_slots: Callable[..., Slots] = open_slots,
) -> Catalog:
    """Load the models that the options name; the built-in ones if they name none.

    Args:
        text_model: loads the language model.
        open_slots: opens its slots, as `tallow.generation.slots.open_slots` does.

    Raises:  TallowError, OSError
    """
    library.share_arena()
    started = time.perf_counter()
    catalog = Catalog()
    names = (
        *(arguments.model, arguments.embed, arguments.rerank, arguments.sparse, arguments.transcribe),
        *(arguments.speak, *arguments.onnx),
    )
    device, quant = arguments.device, arguments.quant
    if arguments.model is not None:
        model = text_model(arguments)
        model.generation_config.warn_of_beams("a server")
        served = TextModel(_public(arguments.model), model, model.tokenizer)
        catalog.texts[served.name] = _text_engine(arguments, served, open_slots)
    elif not any(names):
        served = built_in_texts()
        catalog.texts[served.name] = _text_engine(arguments, served, open_slots)
    if arguments.embed is not None:
        encoder = SentenceEncoder.from_pretrained(arguments.embed, device=device, quant=quant)
        name = _public(arguments.embed)
        catalog.encoders[name] = embedder(name, encoder, arguments.queue)
    elif not any(names):
        try:
            catalog.encoders[GLOSSES] = built_in_encoder(arguments.queue)
        except MissingPackageError as error:  # the other models need no tokenizers
            report(f"no embeddings: {error}")
    if arguments.rerank is not None:
        classifier = TextClassifier.from_pretrained(arguments.rerank, device=device, quant=quant)
        name = _public(arguments.rerank)
        catalog.labellers[name] = labeller(name, classifier, arguments.queue)
    if arguments.sparse is not None:
        sparse = SparseEncoder.from_pretrained(arguments.sparse, device=device, quant=quant)
        name = _public(arguments.sparse)
        catalog.weighers[name] = weigher(name, sparse, arguments.queue)
    if arguments.transcribe is not None:
        whisper = Whisper.from_pretrained(arguments.transcribe, device=device, quant=quant)
        name = _public(arguments.transcribe)
        catalog.listeners[name] = SpeechWorker(name, whisper, queue=arguments.queue)
    elif not any(names):
        worker = built_in_speech(arguments.queue)
        catalog.listeners[worker.name] = worker
    if arguments.speak is not None:
        name = _public(arguments.speak)
        from tallow.transformers.speaking import Speaker

        speaker = Speaker.from_pretrained(arguments.speak, device=device)
        catalog.speakers[name] = SpeakingWorker(name, speaker, queue=arguments.queue)
    for name, file in arguments.onnx:
        if name in catalog.runners:
            raise ArgumentError(f"--onnx {name}={file}: another model has this name", hint="choose another name")
        module = load_onnx(file)
        module.to(device)
        limits = {"queue": arguments.queue, "time_limit_s": arguments.time_limit}
        catalog.runners[name] = TensorWorker(name, module, device=device, **limits)
    report(f"loaded {', '.join(catalog.names)} in {time.perf_counter() - started:.2f} s")
    return catalog


def _text_engine(arguments: argparse.Namespace, served: TextModel, open_slots: Callable[..., Slots]) -> TextEngine:
    options = _slot_options(arguments, served.model)
    engine = TextEngine(
        served,
        queue=arguments.queue,
        time_limit_s=arguments.time_limit,
        by_priority=arguments.priority,
        shares_prefixes=arguments.prefix_cache == SHARED,
        reports_cached=arguments.prefix_cache != SHARED or arguments.report_cached_tokens,
        open_slots=open_slots,
        **options,
    )
    report(f"{served.name}: {arguments.slots} texts of at most {engine.length} tokens at once")
    report(f"{served.name}: {_prefix_mib(arguments)} MiB for {engine.most_pages * PAGE} tokens of known prompts")
    return engine


def _slot_options(arguments: argparse.Namespace, model: CausalLM) -> dict[str, Any]:
    """Return the options of a TextEngine that concern its slots."""
    return {
        "slots": arguments.slots,
        "length": arguments.length or min(model.context_length, LENGTH),
        "cache_dtype": CACHE_DTYPES.get(arguments.cache_dtype),
        "prefix_bytes": _prefix_mib(arguments) << 20,
        "batch_invariant": arguments.batch_invariant,
    }


def _public(name: str) -> str:
    """Return the name of a model for clients: a path on this machine is none of their business."""
    return Path(name).name if Path(name).exists() else name
