"""Encoder-decoder models compared with transformers: equal weights give equal logits, gradients and texts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tokenizers
import torch
import transformers
from support import model_pairs
from support.model_pairs import SEQ2SEQ, T5_SIZES, VOCAB, inputs_of, reference_model
from support.outputs import outputs_of, without_padding
from transformers.models.t5.modeling_t5 import T5Attention

import tallow as tl
from tallow import cli
from tallow.cli import main, serve
from tallow.errors import ArgumentError, CheckpointError
from tallow.generation import Sampler, generate, generate_batch
from tallow.io import safetensors
from tallow.models import AutoModel, T5ForConditionalGeneration
from tallow.nn.relative_positions import buckets

# Both compute in float32; sums of up to 128 terms are taken in a different order.
ATOL = 1e-4
LENGTHS = (30, 12, 21)
SOURCES = [np.random.default_rng(1).integers(3, VOCAB - 1, length).tolist() for length in LENGTHS]
SUMMARIES = {  # facebook/bart-large-cnn's, for shorter texts
    "early_stopping": True,
    "forced_bos_token_id": 5,
    "forced_eos_token_id": 2,
    "length_penalty": 2.0,
    "max_length": 30,
    "min_length": 12,
    "no_repeat_ngram_size": 3,
    "num_beams": 4,
}
FILES: dict[str, dict[str, Any]] = {
    "greedy": {"max_length": 30},
    "summaries": SUMMARIES,
    "translations": {"bad_words_ids": [[7], [11]], "num_beams": 6, "max_length": 24, "forced_eos_token_id": 0},
    "never early": {"num_beams": 3, "early_stopping": "never", "length_penalty": -0.5, "max_length": 24},
    "penalties": {"num_beams": 3, "repetition_penalty": 1.3, "suppress_tokens": [3, 4], "max_length": 24},
    "greedy rules": {"no_repeat_ngram_size": 2, "min_length": 9, "repetition_penalty": 1.2, "max_length": 24},
    "rules of the source": {
        "encoder_no_repeat_ngram_size": 2,
        "encoder_repetition_penalty": 1.4,
        "repetition_penalty": 1.2,
        "num_beams": 3,
        "max_length": 24,
        "renormalize_logits": True,
    },
    "words and ends": {
        "bad_words_ids": [[7], [11, 12]],
        "sequence_bias": [[[5], 1.5], [[8, 9], -4.0]],
        "min_new_tokens": 6,
        "exponential_decay_length_penalty": [8, 1.3],
        "begin_suppress_tokens": [5, 6, 7, 8, 9],
        "forced_eos_token_id": [0, 2],
        "max_length": 24,
    },
    "unigrams": {"no_repeat_ngram_size": 1, "max_length": 9, "max_new_tokens": 20},
}


@pytest.fixture(scope="module", params=SEQ2SEQ)
def models(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Any, Any, Path]:
    """Return a variant, tallow's model, the transformers model, and the folder it was loaded from."""
    folder, reference = tmp_path_factory.mktemp("model"), reference_model(request.param)
    reference.save_pretrained(folder, max_shard_size="20KB")
    return request.param, AutoModel.from_pretrained(folder), reference, folder


def test_logits(models: tuple[str, Any, Any, Path]) -> None:
    variant, model, reference, _ = models
    inputs = inputs_of(variant)
    expected = without_padding(model_pairs.outputs_of(reference, inputs), inputs)
    for ours, theirs in zip(without_padding(outputs_of(model, inputs), inputs), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=ATOL)


def test_logits_with_a_cache(models: tuple[str, Any, Any, Path]) -> None:
    variant, model, reference, _ = models
    inputs = inputs_of(variant)
    expected = model_pairs.outputs_of(reference, inputs)[0]
    ids, text = inputs["input_ids"].tolist(), inputs["decoder_input_ids"].tolist()
    decoder = model.decoder_for([ids[0], ids[1][:20]])
    cache = decoder.new_cache(length=25, batch=2)
    first = decoder.last_logits([row[:10] for row in text], cache, last=3)
    np.testing.assert_allclose(first, expected[:, 7:10], atol=ATOL)
    several = decoder.last_logits([row[10:15] for row in text], cache, last=5)
    np.testing.assert_allclose(several, expected[:, 10:15], atol=ATOL)
    cache.select([1])
    one_by_one = [decoder.next_logits([token], cache) for token in text[1][15:]]
    np.testing.assert_allclose(one_by_one, expected[1, 15:], atol=ATOL)


def test_gradients(models: tuple[str, Any, Any, Path]) -> None:
    variant, model, reference, _ = models
    inputs = inputs_of(variant)
    labels = inputs.pop("decoder_input_ids")
    labels[0, 20:] = -100
    reference.zero_grad()
    theirs = reference(**{name: torch.tensor(x) for name, x in inputs.items()}, labels=torch.tensor(labels))
    theirs.loss.backward()
    ours = model(**{name: tl.tensor(x) for name, x in inputs.items()}, labels=tl.tensor(labels))
    assert ours.loss.item() == pytest.approx(theirs.loss.item(), abs=1e-4)
    np.testing.assert_allclose(ours.logits.detach().numpy(), theirs.logits.detach().numpy(), atol=ATOL)
    model.zero_grad()
    ours.loss.backward()
    expected = dict(reference.named_parameters())
    for name, parameter in model.named_parameters():
        grad = expected[name].grad.numpy()
        np.testing.assert_allclose(parameter.grad.numpy(), grad, atol=ATOL * max(1, abs(grad).max()), err_msg=name)


@pytest.mark.filterwarnings("ignore:.*max_new_tokens.*:UserWarning")
@pytest.mark.parametrize("file", FILES.values(), ids=list(FILES))
def test_texts(models: tuple[str, Any, Any, Path], file: dict[str, Any]) -> None:
    """generation_config.json says how texts are written."""
    _, model, reference, folder = models
    path = folder / "generation_config.json"
    ids = {name: getattr(reference.generation_config, name) for name in ("decoder_start_token_id", "pad_token_id")}
    stops = [int(np.bincount([*model.generate_ids(SOURCES[0], max_tokens=20)]).argmax()), 2]  # one occurs in texts
    path.write_text(json.dumps(file | ids | {"eos_token_id": stops}))
    theirs = type(reference).from_pretrained(folder)
    theirs.load_state_dict(reference.state_dict())
    ours = AutoModel.from_pretrained(folder)
    for source in SOURCES[:2]:
        (text,) = theirs.generate(torch.tensor([source])).tolist()
        expected = text[1:]
        if expected[-1] in ours.stop_ids:
            del expected[-1]
        assert list(ours.generate_ids(source)) == expected


def test_batches(models: tuple[str, Any, Any, Path]) -> None:
    _, model, reference, _ = models
    longest = max(LENGTHS)
    padded, mask = (torch.full((3, longest), value) for value in (model.config.pad_token_id, 0))
    for row, source in enumerate(SOURCES):
        padded[row, : len(source)], mask[row, : len(source)] = torch.tensor(source), 1
    options = {"max_new_tokens": 20, "do_sample": False, "eos_token_id": None, "forced_eos_token_id": None}
    expected = reference.generate(padded, attention_mask=mask, **options)[:, 1:].tolist()
    decoder, texts = model.decoder_for(SOURCES), [[] for _ in SOURCES]
    for row, token in generate_batch(decoder, [model.start_ids] * 3, max_tokens=20):
        texts[row].append(token)
    assert texts == expected
    # A text that ends leaves the batch, with its source.
    stop = expected[0][3]
    texts = [[] for _ in SOURCES]
    for row, token in generate_batch(decoder, [model.start_ids] * 3, max_tokens=20, stop_ids=[stop]):
        texts[row].append(token)
    assert texts == [row[: row.index(stop)] if stop in row else row for row in expected]


def test_transformers_reads_our_weights(models: tuple[str, Any, Any, Path], tmp_path: Path) -> None:
    variant, model, reference, folder = models
    safetensors.save(model.state_dict(), tmp_path / "model.safetensors", {"format": "pt"})
    (tmp_path / "config.json").write_bytes((folder / "config.json").read_bytes())
    inputs = inputs_of(variant)
    theirs = type(reference).from_pretrained(tmp_path).eval()
    for again in (model_pairs.outputs_of(theirs, inputs), outputs_of(AutoModel.from_pretrained(tmp_path), inputs)):
        np.testing.assert_allclose(again[0], outputs_of(model, inputs)[0], atol=ATOL)


def test_quantised(tmp_path: Path) -> None:
    torch.manual_seed(0)
    config = transformers.T5Config(**T5_SIZES | {"d_kv": 16, "feed_forward_proj": "gated-gelu"})
    transformers.T5ForConditionalGeneration(config).save_pretrained(tmp_path)
    inputs = inputs_of("t5")
    exact = outputs_of(AutoModel.from_pretrained(tmp_path), inputs)[0].ravel()
    for quant in ("int8", "q8_0"):
        model = AutoModel.from_pretrained(tmp_path, quant=quant)
        got = outputs_of(model, inputs)[0].ravel()
        assert got @ exact / np.linalg.norm(got) / np.linalg.norm(exact) > 0.999
        assert len(list(model.generate_ids(SOURCES[0], max_tokens=5, num_beams=2))) <= 5


# ---------------------------------------------------------------------------------------------------------------- T5


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize(("count", "longest"), [(32, 128), (8, 20), (16, 64)])
def test_buckets(count: int, longest: int, *, bidirectional: bool) -> None:
    distances = np.arange(-3000, 3000)
    expected = T5Attention._relative_position_bucket(torch.tensor(distances), bidirectional, count, longest)
    ours = buckets(distances, bidirectional=bidirectional, count=count, longest=longest)
    np.testing.assert_array_equal(ours, expected.numpy())


@pytest.mark.parametrize("variant", ["t5, encoder", "t5, gated"])
def test_encoder(variant: str, tmp_path: Path) -> None:
    reference = reference_model(variant)
    reference.save_pretrained(tmp_path)
    inputs = inputs_of("t5, encoder")
    model = tl.models.T5EncoderModel.from_pretrained(tmp_path)
    encoder = reference if variant == "t5, encoder" else reference.get_encoder()
    with torch.no_grad():
        expected = encoder(**{name: torch.tensor(x) for name, x in inputs.items()}).last_hidden_state.numpy()
    (ours,) = without_padding(outputs_of(model, inputs), inputs)
    np.testing.assert_allclose(ours, without_padding([expected], inputs)[0], atol=ATOL)


def test_bfloat16_is_as_close_to_float32_as_transformers(tmp_path: Path) -> None:
    reference, inputs = reference_model("t5, gated"), inputs_of("t5, gated", 24)
    reference.save_pretrained(tmp_path)
    exact = model_pairs.outputs_of(reference, inputs)[0]
    theirs = model_pairs.outputs_of(reference.to(torch.bfloat16), inputs)[0]
    model = AutoModel.from_pretrained(tmp_path, dtype=tl.bfloat16)
    ours = outputs_of(model, inputs)[0]
    assert 0 < np.square(ours - exact).mean() <= 1.5**2 * np.square(theirs - exact).mean()


def test_float16_is_refused(tmp_path: Path) -> None:
    reference_model("t5").save_pretrained(tmp_path)
    with pytest.raises(ArgumentError, match="T5 in float16") as caught:
        AutoModel.from_pretrained(tmp_path, dtype=tl.float16)
    assert "bfloat16" in str(caught.value)


def test_fresh_weights_have_the_spread_of_transformers() -> None:
    torch.manual_seed(0)
    tl.manual_seed(0)
    sizes = T5_SIZES | {"vocab_size": 300, "d_ff": 256, "feed_forward_proj": "gated-gelu"}
    theirs = transformers.T5ForConditionalGeneration(transformers.T5Config(**sizes)).state_dict()
    ours = T5ForConditionalGeneration(tl.models.T5Config(**sizes)).state_dict()
    for name, tensor in ours.items():
        if tensor.ndim == 2 and tensor.numel() > 500:
            assert tensor.std().item() == pytest.approx(theirs[name].std().item(), rel=0.15), name


# -------------------------------------------------------------------------------------------------------------- errors


@pytest.fixture
def t5(tmp_path: Path) -> Path:
    reference_model("t5").save_pretrained(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("source", "message"),
    [([], "no token"), ([97], "outside"), ([-1], "outside"), (["a"], "got str")],
)
def test_invalid_sources(t5: Path, source: list[Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        AutoModel.from_pretrained(t5).generate_ids(source)


def test_invalid_calls(t5: Path) -> None:
    model = AutoModel.from_pretrained(t5)
    with pytest.raises(ArgumentError, match="no sources"):
        model.decoder_for([])
    with pytest.raises(ArgumentError, match="neither decoder_input_ids nor labels"):
        model(tl.tensor([SOURCES[0]]))
    with pytest.raises(ArgumentError, match="num_beams=2 with sampling"):
        model.generate_ids(SOURCES[0], num_beams=2, sample=Sampler(seed=1))
    decoder = model.decoder_for(SOURCES)
    with pytest.raises(ArgumentError, match="1 texts for 3 sources"):
        generate(decoder, model.start_ids, max_tokens=3)
    with pytest.raises(ArgumentError, match="different lengths"):
        list(generate_batch(decoder, [[0], [0, 5], [0]], max_tokens=3))


@pytest.mark.parametrize("entries", [{"bad_words_ids": [3]}, {"early_stopping": 3}, {"sequence_bias": [[[], 1.0]]}])
def test_invalid_generation_settings(t5: Path, entries: dict[str, Any]) -> None:
    (t5 / "generation_config.json").write_text(json.dumps(entries))
    with pytest.raises(CheckpointError, match=next(iter(entries))):
        AutoModel.from_pretrained(t5).generate_ids(SOURCES[0])


def test_a_source_longer_than_the_positions(tmp_path: Path) -> None:
    reference_model("bart").save_pretrained(tmp_path)
    with pytest.raises(ArgumentError, match="64"):
        AutoModel.from_pretrained(tmp_path).generate_ids([5] * 65)


@pytest.mark.parametrize(
    ("variant", "entries"),
    [
        ("bart", {"normalize_before": True}),
        ("marian", {"share_encoder_decoder_embeddings": False}),
        ("t5", {"feed_forward_proj": "gated-maxout"}),
        ("t5", {"relative_attention_num_buckets": 6}),
    ],
)
def test_configs_that_are_not_computed(variant: str, entries: dict[str, Any], tmp_path: Path) -> None:
    reference_model(variant).save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | entries))
    with pytest.raises(CheckpointError):
        AutoModel.from_pretrained(tmp_path)


# ---------------------------------------------------------------------------------------------------------------- text


def save_pieces(folder: Path) -> transformers.PreTrainedTokenizerFast:
    """Save a Unigram tokenizer of T5's form, and return it."""
    letters = [("▁" + letter if i % 2 else letter, -3.0 - i / 50) for i, letter in enumerate("abcdefghijklmnopqrs" * 2)]
    pieces = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁", -2.0), *dict(letters).items()]
    tokenizer = tokenizers.Tokenizer(tokenizers.models.Unigram(pieces, unk_id=2))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    tokenizer.decoder = tokenizers.decoders.Metaspace()
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing("$A </s>", special_tokens=[("</s>", 1)])
    names = {"eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names)
    fast.save_pretrained(folder)
    return fast


def test_text(t5: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In Python and in the terminal, as transformers: the text about the source only."""
    theirs = save_pieces(t5)
    reference = reference_model("t5").eval()
    ids = theirs("abc fed", return_tensors="pt").input_ids
    tokens = reference.generate(ids, max_new_tokens=12, do_sample=False)[0]
    model = AutoModel.from_pretrained(t5)
    text = "".join(model.generate_text("abc fed", max_tokens=12))
    assert text == theirs.decode(tokens, skip_special_tokens=True)
    assert main(["generate", "abc fed", "--model", str(t5), "--steps", "12"]) == 0
    assert capsys.readouterr().out == text + "\n"
    beams = "".join(model.generate_text("abc fed", max_tokens=12, num_beams=3))
    found = reference.generate(ids, max_new_tokens=12, do_sample=False, num_beams=3)[0]
    assert beams == theirs.decode(found, skip_special_tokens=True)


def test_commands_for_language_models_refuse_it(t5: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_pieces(t5)
    message = "is a T5ForConditionalGeneration, not a language model"
    for command in (["chat"], ["train", str(t5 / "config.json"), "--out", str(t5 / "out")]):
        assert main([*command, "--model", str(t5)]) == 2
        error = capsys.readouterr().err
        assert message in error
        assert "tallow generate" in error
    with pytest.raises(ArgumentError, match=message):
        serve.load(cli.parse(["serve", "--model", str(t5)]))
