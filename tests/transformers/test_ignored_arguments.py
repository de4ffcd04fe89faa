"""No argument of transformers is taken and ignored: it is honoured, refused by name, or a warning names it.

`tests/source/test_arguments.py` reads the signatures here. What comes through `**kwargs` or the fields of a class is
found by rule: the real package's fields and entries, and the source of this one.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.transformers.folders import Folders

import tallow as tl
import tallow.transformers as mine
from tallow.errors import TallowError, TallowWarning
from tallow.transformers import downloads, image_processing, modeling_loading, tokenization_files, training_args
from tallow.transformers.generation import mixin

SOURCE = Path(mine.__file__).parent
IDS = tl.tensor([[5, 6, 7]])


@cache
def trees() -> dict[str, ast.Module]:
    return {path.relative_to(SOURCE).as_posix(): ast.parse(path.read_text("utf-8")) for path in SOURCE.rglob("*.py")}


def read_of(*owners: str) -> set[str]:
    """Return the attributes that the package reads of variables and attributes with these names, also by getattr."""
    found = set()
    for name, tree in trees().items():
        if name.endswith(("training_args.py", "configuration_utils.py")):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and owner(node.value) in owners:
                found.add(node.attr)
            if isinstance(node, ast.FunctionDef) and any(gets(each, owners) for each in ast.walk(node)):
                found |= {each.value for each in ast.walk(node) if isinstance(each, ast.Constant)}
    return found


def owner(node: ast.AST) -> str | None:
    return getattr(node, "id", getattr(node, "attr", None))


def gets(node: ast.AST, owners: tuple[str, ...]) -> bool:
    is_call = isinstance(node, ast.Call) and owner(node.func) == "getattr"
    return is_call and owner(node.args[0]) in owners


def says(name: str, function: Any, *args: Any, **kwargs: Any) -> bool:
    """Return whether a call refuses an argument, or warns of it, by its name."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            function(*args, **kwargs)
        except (TallowError, TypeError) as error:
            return name in str(error)
    return any(name in str(each.message) for each in caught)


# ------------------------------------------------------------------------------------------------- TrainingArguments

# Read by programs alone, in transformers too; or by a property of another name, which the Trainer reads.
BY_PROGRAMS = {"do_train", "do_predict", "do_eval", "resume_from_checkpoint"}
BY_PROPERTIES = {"use_cpu", "per_device_train_batch_size", "per_device_eval_batch_size", "warmup_steps"}
ALWAYS = {"full_determinism"}  # a seed decides on every result
OTHERS: dict[type, Any] = {bool: False, int: 7, float: 0.7, str: "other"}


def fields(name: str) -> list[tuple[str, Any]]:
    transformers = pytest.importorskip("transformers")
    return [(each.name, each.default) for each in dataclasses.fields(getattr(transformers, name))]


@pytest.mark.parametrize("kind", ["TrainingArguments", "Seq2SeqTrainingArguments"])
def test_training_arguments(kind: str, tmp_path: Path) -> None:
    read = read_of("args") | set(training_args.RENAMED)
    dropped = []
    for name, default in fields(kind):
        other = True if default is None or default is False else OTHERS.get(type(default), [1])
        if name in read | BY_PROGRAMS | BY_PROPERTIES | ALWAYS or name == "output_dir":
            continue
        if not says(name, getattr(mine, kind), **({"output_dir": str(tmp_path)} | {name: other})):
            dropped.append(name)
    assert not dropped


def test_properties_read_the_others(tmp_path: Path) -> None:
    given = {"per_device_train_batch_size": 3, "per_device_eval_batch_size": 5, "use_cpu": True, "warmup_steps": 2}
    args = mine.TrainingArguments(str(tmp_path), **given)
    assert (args.train_batch_size, args.eval_batch_size, args.device.type) == (3, 5, "cpu")
    assert args.get_warmup_steps(10) == 2


# --------------------------------------------------------------------------------------------------------- generation


def test_entries_of_generation_config() -> None:
    transformers = pytest.importorskip("transformers")
    entries = {name for name in vars(transformers.GenerationConfig()) if name[0] != "_"} - {"transformers_version"}
    named = {name for names in mixin.UNUSED for name in names}
    modes = read_by("get_generation_mode", "_wanted")
    dropped = entries - read_of("config", "merged", "request") - named - modes - set(mixin.OUTPUTS)
    assert not dropped


def read_by(*functions: str) -> set[str]:
    """Return the attributes that functions read."""
    found = (
        node
        for tree in trees().values()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name in functions
    )
    return {node.attr for each in found for node in ast.walk(each) if isinstance(node, ast.Attribute)}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("is_assistant", True),
        ("num_assistant_tokens_schedule", "heuristic"),
        ("assistant_lookbehind", 3),
        ("diversity_penalty", 0.5),
        ("num_beam_groups", 2),
        ("penalty_alpha", 0.5),
        ("assistant_tokenizer", object()),
        ("use_model_defaults", False),
        ("max_cache_len", 4),
        ("prefill_chunk_size", 2),
        ("compile_config", {}),
        ("no_such", 1),
    ],
)
def test_generate(name: str, value: Any, folders: Folders) -> None:
    model = mine.AutoModelForCausalLM.from_pretrained(folders("LlamaForCausalLM"))
    assert not says(name, model.generate, IDS, max_new_tokens=2)
    assert says(name, model.generate, IDS, max_new_tokens=2, **{name: value})


# ------------------------------------------------------------------------------------------------------------ loading


@pytest.mark.parametrize("name", [*modeling_loading.NEUTRAL, *downloads.NEUTRAL, "variant", "no_such"])
def test_loading_models(name: str, folders: Folders) -> None:
    folder = folders("LlamaForCausalLM")
    quiet = [value for value in {**modeling_loading.NEUTRAL, **downloads.NEUTRAL}.get(name, ()) if value is not None]
    for value in quiet:
        assert not says(name, mine.AutoModelForCausalLM.from_pretrained, folder, **{name: value})
    assert says(name, mine.AutoModelForCausalLM.from_pretrained, folder, **{name: "other"})


@pytest.mark.parametrize("name", ["use_fast", "from_slow", "config"])
def test_loading_tokenizers(name: str, folders: Folders) -> None:
    assert name in tokenization_files.NEUTRAL
    assert says(name, mine.AutoTokenizer.from_pretrained, folders("LlamaForCausalLM"), **{name: "other"})


@pytest.mark.parametrize("name", image_processing._NEUTRAL)
def test_image_processors(name: str) -> None:
    images = tl.zeros(3, 8, 8)
    process = mine.ViTImageProcessor(size={"height": 8, "width": 8})
    assert not says(name, process, images)
    assert says(name, process, images, **{name: "other"})


def test_the_generation_config_of_a_call_is_kept(folders: Folders) -> None:
    config = mine.GenerationConfig(max_new_tokens=3)
    model = mine.AutoModelForCausalLM.from_pretrained(folders("LlamaForCausalLM"), generation_config=config)
    assert model.generate(IDS).shape == (1, 6)


@pytest.mark.parametrize(
    ("text", "error"),
    [("{bad", "not valid JSON"), ("[]", "not a JSON object"), ('{"max_new_tokens": -5}', "max_new_tokens=-5")],
)
def test_broken_generation_configs(text: str, error: str, folders: Folders, tmp_path: Path) -> None:
    mine.AutoModelForCausalLM.from_pretrained(folders("LlamaForCausalLM")).save_pretrained(tmp_path)
    (tmp_path / "generation_config.json").write_text(text)
    with pytest.raises(TallowError, match=error):
        mine.AutoModelForCausalLM.from_pretrained(tmp_path).generate(IDS, max_new_tokens=2)


# --------------------------------------------------------------------------------------------- pipelines, tokenizers


@pytest.mark.parametrize("options", [{"batch_size": 0}, {"batch_size": "x"}, {"num_workers": -1}, {"framework": "tf"}])
def test_pipelines(options: dict[str, Any], folders: Folders) -> None:
    (name,) = options
    folder = folders("BertForSequenceClassification")
    assert says(name, mine.pipeline, "text-classification", folder, **options)
    if name != "framework":
        pipe = mine.pipeline("text-classification", folder)
        with pytest.raises(TallowError, match=name):
            pipe("a cat", **options)


@pytest.mark.parametrize("option", ["use_fast", "num_workers"])
def test_pipelines_warn(option: str, folders: Folders) -> None:
    value = {"use_fast": False, "num_workers": 2}[option]
    with pytest.warns(TallowWarning, match=option):
        mine.pipeline("text-classification", folders("BertForSequenceClassification"), **{option: value})


@pytest.mark.parametrize(
    "options",
    [
        {"max_length": -1},
        {"max_length": "3"},
        {"max_length": 2.5},
        {"stride": -1},
        {"pad_to_multiple_of": -2, "padding": True},
        {"max_target_length": -1, "text_target": "a"},
        {"no_such": 1},
        {"tokenizer_kwargs": {"no_such": 1}},
    ],
)
def test_tokenizers(options: dict[str, Any], folders: Folders) -> None:
    tokenizer = mine.AutoTokenizer.from_pretrained(folders("BertForSequenceClassification"))
    name = "no_such" if "no_such" in str(options) else next(iter(options))
    assert says(name, tokenizer, "a cat", **options)


# ---------------------------------------------------------------------------------------------------------- by source

# (file, what is taken out) -> why nothing is said.
TAKEN_OUT = {
    ("generation/configuration_utils.py", "_commit_hash"): "of transformers' own calls",
    ("generation/configuration_utils.py", "_from_model_config"): "of transformers' own calls",
    ("generation/configuration_utils.py", "name"): "of transformers' own calls",
    ("generation/mixin.py", "trust_remote_code"): "counts with custom_generate, which refuses code of a repository",
    ("forward_common.py", "name"): "cache_position follows from the cache; encoders have none",
    ("configuration.py", "name"): "the class has the model type",
    ("configuration_backbones.py", "stage_names"): "they follow from the number of layers",
    ("preprocessing.py", "name"): "the class is known",
    ("feature_extraction_whisper.py", "mel_filters"): "follows from other entries",
    ("pipelines/speech_recognition.py", "ignore_warning"): "there is no warning of parts",
}


def discarded(tree: ast.Module) -> Iterator[str]:
    """Yield what `kwargs.pop(...)` takes out of arguments and entries, where nothing reads the value."""
    for node in ast.walk(tree):
        call = node.value if isinstance(node, ast.Expr) else None
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "pop":
            owner = getattr(call.func.value, "id", "")
            if owner in ("kwargs", "others", "unknown", "entries", "settings", "arguments", "given") and call.args:
                yield getattr(call.args[0], "value", getattr(call.args[0], "id", ""))


def test_nothing_is_taken_out_of_arguments_in_silence() -> None:
    found = {(name, each) for name, tree in trees().items() for each in discarded(tree)}
    labels = {("trainer_seq2seq.py", "labels")}  # of a batch
    assert found - labels == TAKEN_OUT.keys()


def test_public_functions_refuse_arguments_by_name() -> None:
    """Each parameter of transformers' functions is one here, or comes through `**`, which other tests hold."""
    transformers = pytest.importorskip("transformers")
    for name in ("get_scheduler", "set_seed", "pipeline", "default_data_collator"):
        own = inspect.signature(getattr(mine, name)).parameters
        takes_any = any(each.kind is each.VAR_KEYWORD for each in own.values())
        theirs = inspect.signature(getattr(transformers, name)).parameters
        assert takes_any or theirs.keys() <= own.keys() | {"kwargs"}, name
