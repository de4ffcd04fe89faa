"""Kill writers of folders at each of their changes to the disk, and look at what is left.

    python kills.py WRITER WAY FOLDER    prints a JSON list: after each kill, what the folder is, and what after a write
    python kills.py replacement WAY FOLDER    prints a JSON list: what is left of a folder that is replaced by another

A writer replaces the folder of a model that has other files of the user. A change is an event of Python's audit hooks:
making, opening for writing, renaming, linking or removing a file or folder. The process ends before the change, as if
by SIGKILL.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

import tallow as tl
from tallow.cli import main
from tallow.errors import TallowError
from tallow.io import whole_folder
from tallow.models import AutoModel
from tallow.models.decoders.llama import Llama, LlamaConfig
from tallow.models.decoders.llama_formats import save_hugging_face
from tallow.models.encoders import bert
from tallow.models.encoders.sentence import SentenceEncoder
from tallow.peft import LoraConfig, PeftModel, get_peft_model
from tallow.training.export import export
from tallow.training.vocabulary import write_byte_vocabulary

CHANGES = {"os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.link", "os.chmod", "ctypes.dlsym"}
KILLED = 9
NOTE = "of the user"
SIZES = {"vocab_size": 257, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2}
SIZES |= {"num_attention_heads": 2, "max_position_embeddings": 32}
MODULES = [("Transformer", ""), ("Pooling", "1_Pooling")]


def llama(seed: int) -> Llama:
    """Return a model; those of two seeds differ in weights and in numbers of the config, and fit each other."""
    tl.manual_seed(seed)
    return Llama(LlamaConfig(**SIZES, num_key_value_heads=1, rope_theta=100.0 * seed, eos_token_id=(seed,)))


def adapter(seed: int) -> PeftModel:
    """Return a model with two adapters, which fit the other seed's with another scale."""
    tl.manual_seed(seed)
    model = get_peft_model(llama(1), LoraConfig(r=2, lora_alpha=4 * seed, init_lora_weights=False))
    model.add_adapter("other", LoraConfig(r=2, lora_alpha=6 * seed, init_lora_weights=False))
    return model


def language_model(seed: int, folder: Path) -> None:
    save_hugging_face(llama(seed), folder)
    write_byte_vocabulary(folder)


def sentence_encoder(seed: int, folder: Path) -> None:
    """Write a sentence encoder with another pooling for each seed."""
    tl.manual_seed(seed)
    save_hugging_face(bert.BertModel(bert.BertConfig(**SIZES, initializer_range=0.5)).eval(), folder)
    write_byte_vocabulary(folder)
    modules = [{"path": place, "type": f"sentence_transformers.models.{kind}"} for kind, place in MODULES]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir(exist_ok=True)
    modes = {f"pooling_mode_{kind}": i == seed for i, kind in ((1, "mean_tokens"), (2, "cls_token"))}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(modes))


def model_numbers(folder: Path) -> list[Any]:
    model = AutoModel.from_pretrained(folder)
    return [asdict(model.config), *({name: tensor.tolist()} for name, tensor in model.state_dict().items())]


def adapter_numbers(folder: Path) -> list[Any]:
    model = PeftModel.from_pretrained(llama(1), folder)
    model.load_adapter(folder / "other", "other")
    tensors = {name: tensor.tolist() for name, tensor in model.state_dict().items() if "lora" in name}
    return [*(config.lora_alpha for config in model.peft_config.values()), tensors]


def embedding(folder: Path) -> list[Any]:
    return np.asarray(SentenceEncoder.from_pretrained(folder).encode(["abc"])).tolist()


def convert(source: Path, target: Path) -> None:
    with open(os.devnull, "w") as null, contextlib.redirect_stderr(null):
        assert main(["convert", str(source), str(target), "--force"]) == 0


def exported(source: Path, target: Path) -> None:
    export(AutoModel.from_pretrained(source), target)


# Of each writer: how a model of a seed is written to a new folder, how one folder is written over another, and what is
# computed from a folder.
WRITERS: dict[str, tuple[Callable[[int, Path], None], Callable[[Path, Path], None], Callable[[Path], Any]]] = {
    "convert": (language_model, convert, model_numbers),
    "convert, parts": (sentence_encoder, convert, embedding),
    "export": (language_model, exported, model_numbers),
    "save_hugging_face": (language_model, lambda _, target: save_hugging_face(llama(1), target), model_numbers),
    "save_pretrained": (
        lambda seed, folder: adapter(seed).save_pretrained(folder),
        lambda _, target: adapter(1).save_pretrained(target),
        adapter_numbers,
    ),
}
# Of each way to replace a folder: the function that does not work there.
WAYS = {"exchange": None, "two renames": "_exchange", "in place": "_swap"}


def killed_at(change: int, write: Callable[[], None]) -> bool:
    """Run a writer in another process that ends before one of its changes. Returns: whether there was one"""
    child = os.fork()
    if not child:
        count = 0

        def hook(event: str, arguments: tuple[Any, ...]) -> None:
            nonlocal count
            if event in CHANGES or (event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR)):
                count += 1
                if count == change:
                    os._exit(KILLED)

        sys.addaudithook(hook)
        write()
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, KILLED), status
    return status == KILLED


def outcome(compute: Callable[[Path], Any], folder: Path, known: dict[str, Any]) -> str:
    """Return "old" or "new", what a folder computes; "mixture"; or the error of its reader."""
    try:
        result = compute(folder)
    except (TallowError, OSError) as error:
        return f"{type(error).__name__}: {error}"
    return next((name for name, numbers in known.items() if numbers == result), "mixture")


def run(writer: str, way: str, scratch: Path) -> list[list[Any]]:
    os.fsync = lambda _: None  # a process is killed here, not the machine
    make, write, compute = WRITERS[writer]
    if broken := WAYS[way]:
        setattr(whole_folder, broken, lambda *_: False)
    new, old, folder = scratch / "new", scratch / "old", scratch / "folder"
    make(1, new)
    make(2, old)
    (old / "README.md").write_text(NOTE)
    known = {"old": compute(old), "new": compute(new)}
    assert known["old"] != known["new"]
    results: list[list[Any]] = []
    while True:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(old, folder)
        if not killed_at(len(results) + 1, lambda: write(new, folder)):
            return results
        found = outcome(compute, folder, known)
        note = folder / "README.md"
        has_note = note.exists()
        write(new, folder)
        kept = note.exists() and note.read_text() == NOTE and not whole_folder.aside(folder).exists()
        results.append([found, has_note, outcome(compute, folder, known), kept])


REPLACEMENT, ENTRY = "replacement", "index.html"
SITES = {
    "old": (ENTRY, "site.json", "a/1.html", "a/old/2.html", "b", "c/3.html"),
    "new": (ENTRY, "site.json", "a/1.html", "b/4.html", "c", "d/new/5.html"),
}


def replace(folder: Path, site: str) -> None:
    """Replace a folder by one of the sites. Each of its files has the site's name."""
    with whole_folder.replaced_folder(folder, ENTRY) as stage:
        for name in SITES[site]:
            (stage / name).parent.mkdir(parents=True, exist_ok=True)
            (stage / name).write_text(site)


def found_in(folder: Path) -> str:
    content = {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}
    if ENTRY not in content:
        return "no entry"
    return next((site for site, names in SITES.items() if content == dict.fromkeys(names, site)), "mixture")


def run_replacement(way: str, folder: Path) -> list[str]:
    if broken := WAYS[way]:
        setattr(whole_folder, broken, lambda *_: False)
    results: list[str] = []
    replace(folder, "old")
    while killed_at(len(results) + 1, lambda: replace(folder, "new")):
        results.append(found_in(folder))
        replace(folder, "old")
    return results


if __name__ == "__main__":
    writer, way, scratch = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    is_replacement = writer == REPLACEMENT
    print(json.dumps(run_replacement(way, scratch / "site") if is_replacement else run(writer, way, scratch)))
