"""Models exported to ONNX with sizes that vary: onnxruntime and `tl.onnx.load` compute the same at other sizes."""

from __future__ import annotations

from typing import Any

import pytest
from support.small_models import ENTRIES

import tallow as tl
from tallow import models
from tallow.errors import ArgumentTypeError, UnsupportedError
from tallow.export import Dim
from tallow.models.causal_lm import CausalLM

pytest.importorskip("onnx", reason="onnx, which checks the files, is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime, the reference of these tests, is not installed")
pytestmark = [pytest.mark.native, pytest.mark.cpu("onnxruntime computes on the CPU")]

BATCH, TOKENS, OUT = Dim("batch"), Dim("tokens", max=8), Dim("out", max=9)
TEXTS, OTHERS = tl.tensor([[3, 4, 5, 6, 7], [6, 5, 4, 3, 8], [1, 2, 3, 4, 9]]), tl.tensor([[1, 2, 3, 4, 6, 7], [8] * 6])
STARTS, LONGER = tl.tensor([[1, 2], [3, 4], [5, 6]]), tl.tensor([[1, 2, 3], [5, 6, 7]])
CONFIGS = {getattr(models, name).config_class: entries for name, entries in reversed(ENTRIES.items())}
WRITES = ("ForConditionalGeneration", "MTModel")  # the ends of the names of models that write about a source


def is_exported(name: str) -> bool:
    cls: Any = getattr(models, name)
    return isinstance(cls, type) and getattr(cls, "config_class", None) in CONFIGS


# The steps of a recurrence depend on the text.
REFUSED = ("FalconH1", "Jamba", "Mamba", "Mamba2", "Qwen3Next", "Qwen3_5", "Qwen3_5Moe", "RWKV7")
# The length of a sound depends on the text; and a model whose parts are those of CLIP's and BART's.
ELSEWHERE = ("VitsModel", "BlipForConditionalGeneration")
# One model of each family, and all heads of some.
WITH_HEADS = ("Bert", "CLIP", "Llama", "T5", "ViT")
OTHER_HEADS = [
    name
    for names in models._CLASSES.values()
    for name in names
    # BART's and T5's labels of texts are read at the end token, of which each text has one: the texts here have none.
    if is_exported(name)
    and name not in ENTRIES
    and name.startswith(WITH_HEADS)
    and name != "T5ForSequenceClassification"
]
MODELS = [*(name for name in ENTRIES if name not in REFUSED + ELSEWHERE), *OTHER_HEADS]


def small(name: str) -> Any:
    cls: Any = getattr(models, name)
    entries = CONFIGS[cls.config_class]
    if name.endswith("ForSequenceClassification"):
        entries = entries | {"pad_token_id": 0}
    tl.manual_seed(0)
    return cls(cls.config_class.from_entries(entries, "entries")).eval()


def calls(name: str, model: Any) -> tuple[tuple[Any, ...], tuple[Any, ...], Any]:
    """Return arguments, others of other sizes, and the sizes that vary."""
    texts = {0: BATCH, 1: TOKENS}
    if name == "Whisper":
        config = model.config
        sound = tl.randn(2, config.num_mel_bins, 2 * config.max_source_positions)
        return (sound, STARTS[:2]), (sound, LONGER), ({}, {1: OUT})
    if name.endswith(WRITES):
        sizes = {"input_ids": texts, "decoder_input_ids": {0: BATCH, 1: OUT}}
        return (TEXTS, STARTS), (OTHERS, LONGER), sizes
    if name.endswith("ForCTC"):
        return (tl.randn(3, 60),), (tl.randn(2, 60),), ({0: BATCH},)
    images, more = tl.randn(3, 3, 8, 8), tl.randn(2, 3, 8, 8)
    if name == "CLIPModel":
        return (TEXTS, images), (OTHERS, more), (texts, {0: BATCH})
    if name.startswith(("ViT", "Dinov2", "CLIPFor", "CLIPVision", "ResNet", "Detr", "DepthAnything", "Segformer")):
        return (images,), (more,), ({0: BATCH},)
    return (TEXTS,), (OTHERS,), (texts,)


def options(name: str, args: tuple[Any, ...]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if name.endswith(WRITES):
        return args[:1], {"decoder_input_ids": args[1]}
    return args, {}


@pytest.mark.parametrize("name", MODELS)
def test_a_model_is_exported(name: str) -> None:
    from support import onnx_runs as runs

    model = small(name)
    example, other, sizes = calls(name, model)
    args, kwargs = options(name, example)
    program, file = runs.exported(model, args, kwargs=kwargs, dynamic_shapes=sizes)
    run = runs.session(file)
    for given in (example, other):
        args, kwargs = options(name, given)
        runs.assert_runtime_agrees(program, run, model, args, kwargs, 2e-5)
    runs.assert_loaded_agrees(file, model, *options(name, other), 5e-6 if name == "Whisper" else 1e-6)


def test_every_family_is_exported() -> None:
    assert set(ENTRIES) - {*REFUSED, *ELSEWHERE} <= set(MODELS)


@pytest.mark.parametrize("name", REFUSED)
def test_a_recurrence_is_refused(name: str) -> None:
    with pytest.raises(UnsupportedError, match=r"export of (the gated delta rule|a recurrence)"):
        tl.onnx.export(small(name), (TEXTS,))


DECODERS = [name for name in ENTRIES if issubclass(getattr(models, name), CausalLM)]
LANGUAGE_MODELS = [name for name in DECODERS if small(name).config.layer_shapes is None]


def test_a_decoder_with_states_is_refused() -> None:
    assert {"Lfm2", "Qwen3_5"} <= {*DECODERS} - {*LANGUAGE_MODELS}
    with pytest.raises(ArgumentTypeError, match="DecoderWithPast: the layers of a Lfm2 have caches of several kinds"):
        tl.onnx.DecoderWithPast(small("Lfm2"))


@pytest.mark.parametrize("name", LANGUAGE_MODELS)
def test_a_decoder_continues_from_its_keys_and_values(name: str) -> None:
    """The file reads a text in parts, from an empty past on, as the model reads it at once."""
    from support import onnx_runs as runs

    model = small(name)
    decoder = tl.onnx.DecoderWithPast(model)
    arguments = decoder.export_arguments()
    program, file = runs.exported(decoder, arguments.pop("args"), **arguments)
    names = [value.name for value in program.model_proto.graph.input]
    assert names[:2] == ["input_ids", "past_key_values.0.key"]
    text = tl.tensor([[1, 2, 3, 4, 5, 6]])
    run, loaded = runs.session(file), tl.onnx.load(file)
    state, kept = [x.numpy() for x in decoder.empty()], decoder.empty()
    logits: list[Any] = []
    others: list[Any] = []
    for part in (text[:, :3], text[:, 3:4], text[:, 4:]):
        found, *state = run.run(None, dict(zip(names, [part.numpy(), *state], strict=True)))
        with tl.no_grad():
            other, *kept = loaded(part, *kept)
        logits.append(tl.from_numpy(found))
        others.append(other)
    with tl.no_grad():
        expected = model(text)
    tl.testing.assert_close(tl.cat(logits, 1), expected, rtol=1e-5, atol=1e-5)
    tl.testing.assert_close(tl.cat(others, 1), expected, rtol=1e-5, atol=1e-5)
