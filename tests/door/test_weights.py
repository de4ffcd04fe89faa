"""Weights as files hold them: heads of their own beside a config that ties them, and tensors under other names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from support import model_pairs
from support.model_pairs import inputs_of
from support.outputs import outputs_of, without_padding

import tallow as tl
from tallow import cli, kernels
from tallow.errors import CheckpointError, TallowWarning
from tallow.generation import generate
from tallow.io.model_folder import memory_folder
from tallow.models import AutoModel, BertForMaskedLM, BertForPreTraining, Llama, LlamaConfig
from tallow.models.loading_report import LoadingReport
from tallow.peft import LoraConfig, get_peft_model

ATOL = 1e-4  # sums in float32, in another order
COARSE = 0.05  # of the mean logit, for weights in 8 or 16 bits; with the other head it is off by more than 1
WEIGHTS = "model.safetensors"
DECODERS = ("gpt2", "llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "gemma3", "mixtral", "phi3", "falcon rw")
HEADS = {
    "bert": "cls.predictions.decoder",
    "roberta": "lm_head.decoder",
    "xlm-roberta": "lm_head.decoder",
    "distilbert": "vocab_projector",
    "modernbert": "decoder",
}
BIASES = {"bert": "cls.predictions.bias", "roberta": "lm_head.bias", "xlm-roberta": "lm_head.bias"}  # other names


def folder_of(variant: str, path: Path, **changed: Any) -> Path:
    """Write a folder with random weights of a variant in model_pairs, whose config ties the head to the embedding."""
    name, sizes = model_pairs.EVERY[variant]
    torch.manual_seed(0)
    kind = getattr(transformers, name)
    kind(kind.config_class(**sizes | {"tie_word_embeddings": True} | changed)).save_pretrained(path)
    return path


def rewrite(folder: Path, changes: dict[str, torch.Tensor | None]) -> None:
    """Replace tensors of a folder's file, and remove those that are None."""
    state = load_file(folder / WEIGHTS) | changes
    save_file({name: each for name, each in state.items() if each is not None}, folder / WEIGHTS, {"format": "pt"})


def random(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(shape[0])) / 3


def reference(variant: str, folder: Path) -> Any:
    return getattr(transformers, model_pairs.EVERY[variant][0]).from_pretrained(folder).eval()


def assert_equal(model: Any, variant: str, folder: Path) -> None:
    """Check that the first output is that of transformers, from the same folder."""
    inputs = inputs_of(variant)
    expected = model_pairs.outputs_of(reference(variant, folder), inputs)[:1]
    ours, theirs = (without_padding(outputs, inputs)[0] for outputs in (outputs_of(model, inputs)[:1], expected))
    np.testing.assert_allclose(ours, theirs, atol=ATOL)


# ---------------------------------------------------------------------------------------------- heads of their own


@pytest.mark.parametrize("variant", DECODERS)
def test_a_decoder_uses_the_head_of_its_file(variant: str, tmp_path: Path) -> None:
    folder = folder_of(variant, tmp_path)
    rewrite(folder, {"lm_head.weight": random(model_pairs.VOCAB, 36 if variant == "falcon rw" else 32)})
    model = AutoModel.from_pretrained(folder)
    assert_equal(model, variant, folder)
    assert model.lm_head is not None
    assert not model.config.tie_word_embeddings


@pytest.mark.parametrize("variant", DECODERS)
def test_a_repeated_head_stays_tied(variant: str, tmp_path: Path) -> None:
    folder = folder_of(variant, tmp_path)
    table = next(
        each
        for name, each in load_file(folder / WEIGHTS).items()
        if name.endswith(("wte.weight", "ings.weight", "tokens.weight"))
    )
    rewrite(folder, {"lm_head.weight": table.clone()})
    model = AutoModel.from_pretrained(folder)
    assert model.lm_head is None
    assert_equal(model, variant, folder)


@pytest.mark.parametrize("variant", DECODERS)
def test_a_head_may_be_the_only_name_of_the_embedding(variant: str, tmp_path: Path) -> None:
    folder = folder_of(variant, tmp_path)
    name = next(
        name for name in load_file(folder / WEIGHTS) if name.endswith(("wte.weight", "ings.weight", "tokens.weight"))
    )
    rewrite(folder, {"lm_head.weight": load_file(folder / WEIGHTS)[name], name: None})
    model = AutoModel.from_pretrained(folder)
    assert model.lm_head is None
    assert_equal(model, variant, folder)


@pytest.mark.parametrize(
    "changes",
    [("weight",), ("bias",), ("weight", "bias"), ("weight", "bias", "no other bias"), ("bias", "no other bias")],
    ids=" ".join,
)
@pytest.mark.filterwarnings("ignore:.* the model has other values for")  # the bias that is not used
@pytest.mark.parametrize("variant", HEADS)
def test_a_masked_language_model_uses_the_head_of_its_file(
    variant: str, changes: tuple[str, ...], tmp_path: Path
) -> None:
    if variant in BIASES or "no other bias" not in changes:
        head, vocabulary = HEADS[variant], model_pairs.ENCODER_SIZES["vocab_size"]
        tensors = {"weight": random(vocabulary, 32), "bias": random(vocabulary)}
        folder = folder_of(f"{variant} ForMaskedLM", tmp_path)
        rewrite(folder, {f"{head}.{name}": tensors[name] for name in changes if name in tensors})
        if "no other bias" in changes:
            rewrite(folder, {BIASES[variant]: None})
        assert_equal(AutoModel.from_pretrained(folder), f"{variant} ForMaskedLM", folder)


@pytest.fixture
def untied(tmp_path: Path) -> Path:
    """Return the folder of a Llama with a head of its own and a config that ties it."""
    folder = folder_of("llama", tmp_path / "untied", attention_bias=False, mlp_bias=False, rope_parameters=None)
    rewrite(folder, {"lm_head.weight": random(model_pairs.VOCAB, 32)})
    return folder


def logits(model: Any) -> npt.NDArray[np.float32]:
    return outputs_of(model, inputs_of("llama"))[0]


def expected_logits(folder: Path, **options: Any) -> npt.NDArray[np.float32]:
    model = transformers.LlamaForCausalLM.from_pretrained(folder, **options).eval()
    return model_pairs.outputs_of(model, inputs_of("llama"))[0]


def test_shards_and_pytorch_files(untied: Path, tmp_path: Path) -> None:
    expected, state = expected_logits(untied), load_file(untied / WEIGHTS)
    (untied / WEIGHTS).unlink()
    torch.save(state, untied / "pytorch_model.bin")
    np.testing.assert_allclose(logits(AutoModel.from_pretrained(untied)), expected, atol=ATOL)
    (untied / "pytorch_model.bin").unlink()
    shards = {f"{i}.safetensors": name for i, name in enumerate(state)}
    for shard, name in shards.items():
        save_file({name: state[name]}, untied / shard)
    index = {"weight_map": {name: shard for shard, name in shards.items()}}
    (untied / "model.safetensors.index.json").write_text(json.dumps(index))
    np.testing.assert_allclose(logits(AutoModel.from_pretrained(untied)), expected, atol=ATOL)


@pytest.mark.parametrize("ties", [True, False], ids=["equal", "other"])
def test_pytorch_files_that_hold_both_names_of_one_storage(ties: bool, tmp_path: Path) -> None:
    folder = folder_of("llama", tmp_path)
    state: dict[str, torch.Tensor] = load_file(folder / WEIGHTS)
    table = state["model.embed_tokens.weight"]
    torch.save(state | {"lm_head.weight": table if ties else table.flip(0)}, folder / "pytorch_model.bin")
    (folder / WEIGHTS).unlink()
    model = AutoModel.from_pretrained(folder)
    assert (model.lm_head is None) == ties
    assert_equal(model, "llama", folder)


def test_dtypes(untied: Path) -> None:
    expected = expected_logits(untied, dtype=torch.bfloat16)
    model = AutoModel.from_pretrained(untied, dtype=tl.bfloat16)
    assert model.lm_head.weight.dtype is tl.bfloat16
    assert np.abs(logits(model) - expected).mean() < COARSE * np.abs(expected).mean()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_a_repeated_head_in_another_dtype(dtype: torch.dtype, untied: Path) -> None:
    table = load_file(untied / WEIGHTS)["model.embed_tokens.weight"].to(dtype)
    rewrite(untied, {"lm_head.weight": table, "model.embed_tokens.weight": table.float()})
    assert AutoModel.from_pretrained(untied).lm_head is None


def test_a_head_of_another_vocabulary_is_refused(untied: Path) -> None:
    rewrite(untied, {"lm_head.weight": random(model_pairs.VOCAB + 1, 32)})
    with pytest.raises(CheckpointError, match=r"wrong shape  lm_head.weight: file \(98, 32\), model \(97, 32\)"):
        AutoModel.from_pretrained(untied)


def test_text_by_fused_blocks(untied: Path) -> None:
    prompt = inputs_of("llama")["input_ids"][:1, :5]
    model = transformers.LlamaForCausalLM.from_pretrained(untied)
    expected = model.generate(torch.tensor(prompt), max_new_tokens=20, do_sample=False)[0, 5:].tolist()
    with kernels.require_fused():
        assert list(generate(AutoModel.from_pretrained(untied), prompt[0].tolist(), max_tokens=20)) == expected


def test_quantised_heads(untied: Path) -> None:
    model = AutoModel.from_pretrained(untied, quant="int8")
    expected = expected_logits(untied)
    assert np.abs(logits(model) - expected).mean() < COARSE * np.abs(expected).mean()


def test_models_in_memory(untied: Path) -> None:
    files = {path.name: np.frombuffer(path.read_bytes(), np.uint8) for path in untied.iterdir()}
    expected = expected_logits(untied)
    with memory_folder(files) as load:
        model = Llama.assemble(LlamaConfig.from_json("config.json"), load("."))
    np.testing.assert_allclose(logits(model), expected, atol=ATOL)


@pytest.mark.parametrize("targets", [("folder/",), ("model.gguf",), ("model.gguf", "folder/")], ids=" ".join)
def test_converted_models_keep_the_head(targets: tuple[str, ...], untied: Path, tmp_path: Path) -> None:
    source, expected = untied, expected_logits(untied)
    for target in targets:
        converted = tmp_path / target
        assert cli.main(["convert", str(source), str(converted) + "/" * target.endswith("/")]) == 0
        source = converted
    np.testing.assert_allclose(logits(AutoModel.from_pretrained(source)), expected, atol=ATOL)
    if source.is_dir():
        np.testing.assert_allclose(expected_logits(source), expected, atol=ATOL)


def test_a_merged_adapter_keeps_the_head(untied: Path, tmp_path: Path) -> None:
    model = AutoModel.from_pretrained(untied)
    adapted = get_peft_model(model, LoraConfig(r=2, target_modules=["lm_head"], init_lora_weights=False))
    expected = logits(adapted)
    adapted.save_pretrained(tmp_path / "adapter")
    merged = tmp_path / "merged"
    assert cli.main(["convert", str(untied), f"{merged}/", "--adapter", str(tmp_path / "adapter")]) == 0
    np.testing.assert_allclose(logits(AutoModel.from_pretrained(merged)), expected, atol=ATOL)
    assert not json.loads((merged / "config.json").read_text())["tie_word_embeddings"]
    np.testing.assert_allclose(expected_logits(merged), expected, atol=ATOL)


# ------------------------------------------------------------------------------------------- encoders with decoders

SHARED = {"t5": "shared.weight", "bart": "model.shared.weight", "marian": "model.shared.weight"}
TABLES = {
    "t5": ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight"),
    "bart": ("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight"),
}
TABLES["marian"] = TABLES["bart"]
ENCODER, DECODER, HEAD = range(3)


def named_tables(variant: str, folder: Path, names: dict[int, int], *, shared: bool) -> None:
    """Let a file have the token embedding under these names, and another matrix for each number but 0."""
    table = load_file(folder / WEIGHTS)[SHARED[variant]]
    others = [table, *(table + random(*table.shape) * factor for factor in (1, -1, 2))]
    changes = {TABLES[variant][part]: others[number].clone() for part, number in names.items()}
    rewrite(folder, {**changes, SHARED[variant]: table if shared else None})


@pytest.mark.parametrize(
    "names",
    [(ENCODER,), (DECODER,), (ENCODER, DECODER), (ENCODER, HEAD), (HEAD,)],
    ids=["encoder", "decoder", "both", "encoder and head", "head"],
)
@pytest.mark.parametrize("variant", SHARED)
def test_the_embedding_under_another_of_its_names(variant: str, names: tuple[int, ...], tmp_path: Path) -> None:
    folder = folder_of(variant, tmp_path)
    named_tables(variant, folder, dict.fromkeys(names, 0), shared=False)
    model = AutoModel.from_pretrained(folder)
    assert_equal(model, variant, folder)
    assert model.lm_head is None
    assert not model.config.own_tables


@pytest.mark.parametrize(
    ("names", "shared"),
    [
        ({HEAD: 1}, True),
        ({ENCODER: 1}, True),
        ({DECODER: 1}, True),
        ({ENCODER: 1, DECODER: 1, HEAD: 1}, True),
        ({ENCODER: 1, DECODER: 2, HEAD: 3}, True),
        ({ENCODER: 0, DECODER: 1}, False),
        ({DECODER: 1, HEAD: 0}, False),
        ({ENCODER: 1, DECODER: 2, HEAD: 3}, False),
    ],
    ids=str,
)
@pytest.mark.parametrize("variant", SHARED)
def test_embeddings_of_their_own(variant: str, names: dict[int, int], shared: bool, tmp_path: Path) -> None:
    folder = folder_of(variant, tmp_path)
    named_tables(variant, folder, names, shared=shared)
    model = AutoModel.from_pretrained(folder)
    assert_equal(model, variant, folder)
    ids = inputs_of(variant)["input_ids"][0].tolist()
    options = {"max_new_tokens": 12, "num_beams": 1, "do_sample": False, "forced_eos_token_id": None}
    expected = reference(variant, folder).generate(torch.tensor([ids]), **options)[0, 1:].tolist()
    text = list(generate(model.decoder_for([ids]), model.start_ids, max_tokens=12, stop_ids=model.stop_ids))
    assert text == [token for token in expected if token not in model.stop_ids][: len(text)]
    assert len(text) + 1 >= len(expected)


def test_a_t5_of_version_1_1_without_a_head(tmp_path: Path) -> None:
    folder = folder_of("t5, gated", tmp_path, tie_word_embeddings=False)
    rewrite(folder, {"lm_head.weight": None} if "lm_head.weight" in load_file(folder / WEIGHTS) else {})
    assert_equal(AutoModel.from_pretrained(folder), "t5, gated", folder)


@pytest.mark.parametrize("name", ["shared.weight", "encoder.embed_tokens.weight"])
def test_a_t5_encoder(name: str, tmp_path: Path) -> None:
    folder = folder_of("t5, encoder", tmp_path)
    table = load_file(folder / WEIGHTS)["shared.weight"]
    rewrite(folder, {"shared.weight": None} | {name: table.clone()})
    assert_equal(AutoModel.from_pretrained(folder), "t5, encoder", folder)
    rewrite(folder, {"shared.weight": table.clone(), "encoder.embed_tokens.weight": random(*table.shape)})
    assert_equal(AutoModel.from_pretrained(folder), "t5, encoder", folder)


@pytest.mark.parametrize("variant", SHARED)
def test_a_missing_embedding_is_an_error(variant: str, tmp_path: Path) -> None:
    folder = folder_of(variant, tmp_path)
    rewrite(folder, {SHARED[variant]: None})
    with pytest.raises(CheckpointError, match=rf"missing      {SHARED[variant]}"):
        AutoModel.from_pretrained(folder)


@pytest.mark.parametrize("tied", [True, False])
def test_a_marian_with_two_vocabularies(tied: bool, tmp_path: Path) -> None:
    variant = "marian, two vocabularies"
    folder = folder_of(variant, tmp_path, tie_word_embeddings=tied, encoder_ffn_dim=64, decoder_ffn_dim=32)
    if not tied:
        rewrite(folder, {"lm_head.weight": random(110, 32)})
    model = AutoModel.from_pretrained(folder)
    assert_equal(model, variant, folder)
    assert model.model.encoder.embed_tokens.weight.shape == (97, 32)
    assert model.decoder_for([[5]]).vocab_size == 110
    quantised = AutoModel.from_pretrained(folder, quant="int8")
    inputs = inputs_of(variant)
    expected, ours = outputs_of(model, inputs)[0], outputs_of(quantised, inputs)[0]
    assert 0 < np.abs(ours - expected).mean() < COARSE * np.abs(expected).mean()


def test_marian_positions(tmp_path: Path) -> None:
    folder = folder_of("marian", tmp_path)
    positions = reference("marian", folder).model.encoder.embed_positions.weight.detach().clone()
    rewrite(folder, {"model.encoder.embed_positions.weight": positions})
    assert_equal(AutoModel.from_pretrained(folder), "marian", folder)
    rewrite(folder, {"model.encoder.embed_positions.weight": positions.flip(0)})
    with pytest.raises(CheckpointError, match="are not the sinusoids"):
        AutoModel.from_pretrained(folder)


def test_a_bart_with_nothing_tied(tmp_path: Path) -> None:
    folder = folder_of("bart", tmp_path, tie_word_embeddings=False)
    assert {*TABLES["bart"]} < load_file(folder / WEIGHTS).keys()
    assert_equal(AutoModel.from_pretrained(folder), "bart", folder)


# ------------------------------------------------------------------------------------------------ the loading report


def test_the_report_of_a_decoder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = folder_of("llama", tmp_path)
    table = load_file(folder / WEIGHTS)["model.embed_tokens.weight"]
    derived = "model.layers.0.self_attn.rotary_emb.inv_freq"
    rewrite(folder, {"lm_head.weight": table.clone(), derived: random(4)})
    report = AutoModel.from_pretrained(folder).loading_report
    assert report == LoadingReport(repeated={"lm_head.weight": "model.embed_tokens.weight"}, unused=(derived,))
    rewrite(folder, {"lm_head.weight": random(*table.shape), derived: None})
    assert cli.main(["inspect", str(folder)]) == 0
    line = "untied    lm_head.weight differs from model.embed_tokens.weight, to which the config ties it"
    assert line in capsys.readouterr().out.splitlines()
    rewrite(folder, {"lm_head.weight": table.clone(), "model.embed_tokens.weight": None})
    assert cli.main(["inspect", "--json", str(folder)]) == 0
    shown = json.loads(capsys.readouterr().out)["loading_report"]
    assert shown["renamed"] == {"model.embed_tokens.weight": "lm_head.weight"}


def test_the_report_of_an_encoder(tmp_path: Path) -> None:
    torch.manual_seed(0)
    sizes = model_pairs.ENCODER_SIZES
    transformers.BertForPreTraining(transformers.BertConfig(**sizes)).save_pretrained(tmp_path)
    report = BertForMaskedLM.from_pretrained(tmp_path).loading_report
    parts = ("bert.pooler.dense", "cls.seq_relationship")
    assert {*report.unused} == {f"{part}.{name}" for part in parts for name in ("weight", "bias")}
    rewrite(tmp_path, {"cls.predictions.decoder.bias": random(sizes["vocab_size"])})
    with pytest.warns(TallowWarning, match=r"has other values for cls\.predictions\.bias, which it does not use"):
        report = BertForPreTraining.from_pretrained(tmp_path).loading_report
    assert report.untied == {"cls.predictions.decoder.bias": "cls.predictions.bias"}
    assert report.renamed == {"cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight"}
    assert report.unused == ("cls.predictions.bias",)


def test_the_report_of_new_weights(tmp_path: Path) -> None:
    folder = folder_of("bart", tmp_path)
    rewrite(folder, {"final_logits_bias": None})
    report = AutoModel.from_pretrained(folder).loading_report
    assert report == LoadingReport(new=("final_logits_bias",))
    assert str(report) == "new       final_logits_bias"


@pytest.mark.parametrize("equal", [True, False])
def test_two_tensors_for_one_weight(equal: bool, tmp_path: Path) -> None:
    folder = folder_of("bert ForMaskedLM", tmp_path)
    name = "encoder.layer.0.output.dense.bias"
    bias = load_file(folder / WEIGHTS)[f"bert.{name}"]
    rewrite(folder, {name: bias.clone() if equal else bias + 1})
    if equal:
        assert_equal(AutoModel.from_pretrained(folder), "bert ForMaskedLM", folder)
    else:
        with pytest.raises(CheckpointError, match=rf"two tensors for bert\.{name}"):
            AutoModel.from_pretrained(folder)


WHISPER_SIZES = {
    "vocab_size": model_pairs.VOCAB,
    "d_model": 32,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 3,
    "init_std": 0.2,
}


@pytest.mark.parametrize("kind", ["other", "repeated", "only"])
def test_the_head_of_a_whisper(kind: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    transformers.WhisperForConditionalGeneration(transformers.WhisperConfig(**WHISPER_SIZES)).save_pretrained(tmp_path)
    name = "model.decoder.embed_tokens.weight"
    table = load_file(tmp_path / WEIGHTS)[name]
    head = table.flip(0) if kind == "other" else table.clone()
    rewrite(tmp_path, {"proj_out.weight": head} | ({name: None} if kind == "only" else {}))
    theirs = transformers.WhisperForConditionalGeneration.from_pretrained(tmp_path).eval()
    inputs = {"mel": random(1, 80, 3000).numpy(), "tokens": np.array([[3, 5, 7]])}
    with torch.no_grad():
        expected = theirs(torch.tensor(inputs["mel"]), decoder_input_ids=torch.tensor(inputs["tokens"])).logits.numpy()
    model = AutoModel.from_pretrained(tmp_path)
    np.testing.assert_allclose(outputs_of(model, inputs)[0], expected, atol=ATOL)
    assert (model.proj_out is None) == (kind != "other")
