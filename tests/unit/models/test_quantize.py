"""Models with `quant`: which matrices become blocks, what they compute, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.whisper_files import CONFIG

import tallow as tl
from tallow import kernels, nn
from tallow.errors import ArgumentError, KernelUnavailable
from tallow.generation import generate
from tallow.models import Whisper
from tallow.models.decoders.gpt2 import GPT2, GPT2Config
from tallow.models.decoders.llama import Llama, LlamaConfig
from tallow.models.encoders.bert import BertConfig, BertForMaskedLM, BertForSequenceClassification, BertModel
from tallow.models.encoders.distilbert import DistilBertConfig, DistilBertModel
from tallow.models.encoders.sentence import SentenceEncoder
from tallow.models.pretrained import PretrainedModel
from tallow.models.whisper.steps import Steps
from tallow.nn.block_layers import BlockConv1D, BlockEmbedding, BlockLinear
from tallow.nn.quantization import BlockConfig, quantize_

pytestmark = pytest.mark.cpu("quantised blocks compute on the CPU")
SIZES = {"vocab_size": 50, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
CONV1D = ("attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj")
IDS = np.random.default_rng(0).integers(1, 50, (4, 9))
MASK = np.array([[1] * 9, [1] * 5 + [0] * 4, [0] * 3 + [1] * 6, [1, 0, 1, 1, 0, 1, 0, 0, 1]])


def bert(model_class: Any = BertModel, **options: Any) -> Any:
    tl.manual_seed(0)
    sizes = SIZES | {"intermediate_size": 96, "initializer_range": 0.3}
    return model_class(BertConfig(**sizes | options)).eval()


def distilbert() -> DistilBertModel:
    tl.manual_seed(0)
    sizes = {"dim": 64, "n_layers": 2, "n_heads": 4, "hidden_dim": 96}
    return DistilBertModel(DistilBertConfig(vocab_size=50, **sizes)).eval()


def llama(tied: bool) -> Llama:
    tl.manual_seed(0)
    sizes = {"intermediate_size": 96, "num_key_value_heads": 2, "tie_word_embeddings": tied}
    return Llama(LlamaConfig(**SIZES | sizes, initializer_range=0.3, max_position_embeddings=32)).eval()


def kinds(model: nn.Module) -> dict[str, type]:
    return {name: type(module) for name, module in model.named_modules() if hasattr(module, "weight")}


def hidden(model: Any, *args: Any, **options: Any) -> np.ndarray[Any, Any]:
    with tl.no_grad():
        output = model(tl.tensor(IDS), *args, **options)
    return (output if isinstance(output, tl.Tensor) else output.last_hidden_state).numpy()


def cosines(ours: Any, theirs: Any) -> Any:
    return (ours * theirs).sum(1) / np.linalg.norm(ours, axis=1) / np.linalg.norm(theirs, axis=1)


def test_linear_layers_and_only_they_become_blocks() -> None:
    model = bert(BertForSequenceClassification)
    before = kinds(model)
    assert model.quantize("int8") is model
    expected = {name: BlockLinear if kind is nn.Linear else kind for name, kind in before.items()}
    assert kinds(model) == expected
    assert list(expected.values()).count(BlockLinear) == 2 * 6 + 2
    assert {module.format for module in model.modules() if isinstance(module, BlockLinear)} == {"Q8_0"}


@pytest.mark.parametrize("make", [bert, distilbert])
def test_rounded_weights_are_near_the_others(make: Any) -> None:
    """An element of a block is within half a scale, max|w| / 254, and float16's rounding of the scale."""
    model, quantised = make(), make().quantize("q8_0")
    for name, module in quantised.named_modules():
        if isinstance(module, BlockLinear):
            weight = model.get_submodule(name).weight.detach().numpy().reshape(-1, 32)
            largest = abs(weight).max(axis=1, keepdims=True)
            error = abs(module.weight.numpy().reshape(-1, 32) - weight)
            assert (error <= largest * (1 / 254 + 2**-11)).all()
            assert error.max() > 0
    for masks in ((), (tl.tensor(MASK),)):
        ours, floats = hidden(quantised, *masks).reshape(-1, 64), hidden(model, *masks).reshape(-1, 64)
        assert cosines(ours, floats).min() > 0.99  # weights are large here, so attention is sharp


@pytest.mark.skipif(kernels.info().library == "none", reason="needs the compiled kernels")
@pytest.mark.parametrize("make", [bert, distilbert])
def test_encoders_run_fused(make: Any, capsys: pytest.CaptureFixture[str]) -> None:
    model = make().quantize("int8")
    model.explain()
    assert capsys.readouterr().out.count("fused: encoder_blocks") == 2
    fused = hidden(model, tl.tensor(MASK))
    modules = model(tl.tensor(IDS), tl.tensor(MASK))  # records, so the modules run
    modules = (modules if isinstance(modules, tl.Tensor) else modules.last_hidden_state).detach().numpy()
    difference = abs(fused - modules)
    assert difference.max() < 0.05  # an element near the middle between two codes may get either
    assert np.median(difference) < 1e-4


def test_a_masked_language_model_keeps_its_table() -> None:
    model, quantised = bert(BertForMaskedLM), bert(BertForMaskedLM).quantize("int8")
    assert type(quantised.bert.embeddings.word_embeddings) is nn.Embedding
    np.testing.assert_allclose(hidden(quantised), hidden(model), atol=0.1 * abs(hidden(model)).max())


@pytest.mark.parametrize("tied", [True, False])
def test_heads_of_language_models(tied: bool) -> None:
    model, quantised = llama(tied), llama(tied).quantize("int8")
    assert type(quantised.model.embed_tokens) is (BlockEmbedding if tied else nn.Embedding)
    assert (quantised.lm_head is None) if tied else type(quantised.lm_head) is BlockLinear
    np.testing.assert_allclose(hidden(quantised), hidden(model), atol=0.1 * abs(hidden(model)).max())


def test_whisper_decodes_fused() -> None:
    tl.manual_seed(0)
    model = Whisper(CONFIG).eval().quantize("int8")
    assert type(model.decoder.embed_tokens) is BlockEmbedding
    audio = tl.randn(1, 10, 32)
    rows = [[1, 7, 9]]
    with tl.no_grad(), kernels.require_fused():
        steps = Steps(model, audio)
        steps.start([rows[0][:1]], [0])
        stepwise = [steps.next_logits([rows[0][: n + 1]])[0] for n in (1, 2)]
        whole = model.logits(model.decoder(tl.tensor(rows), model.decoder.listen(audio)))[0, 1:].numpy()
    np.testing.assert_allclose(stepwise, whole, atol=0.05 * abs(whole).max())


def test_other_parameters_get_the_dtype() -> None:
    half = bert().to(dtype=tl.float16)
    assert {parameter.dtype for parameter in half.quantize("int8").parameters()} == {tl.float32}
    assert {parameter.dtype for parameter in bert().quantize("int8", tl.bfloat16).parameters()} == {tl.bfloat16}


def test_quantising_twice_changes_nothing() -> None:
    model = bert().quantize("int8")
    before = {name: tensor.numpy().copy() for name, tensor in model.state_dict().items()}
    for name, tensor in model.quantize("int8").state_dict().items():
        np.testing.assert_array_equal(tensor.numpy(), before[name])


def test_unknown_names_and_devices() -> None:
    with pytest.raises(ArgumentError, match=r"quant='int9'\n.*'int8', .*'q8_0'"):
        bert().quantize("int9")
    with pytest.raises(ArgumentError, match="quant='int9'"):
        BertModel.from_pretrained("no/such/folder", quant="int9")
    with pytest.raises(ArgumentError, match=r"on meta, which has no kernels for quantised weights"):
        BertModel(BertConfig(**SIZES, intermediate_size=96), device="meta").quantize("int8")
    with pytest.raises(ArgumentError, match="format='Q9'"):
        BlockConfig("Q9")


@pytest.mark.parametrize("make", [lambda: bert(intermediate_size=90), lambda: bert(hidden_size=40)])
def test_rows_that_are_not_whole_blocks(make: Any) -> None:
    model = make()
    with pytest.raises(ArgumentError, match=r"encoder\.layer\.0\..*rows of .*Q8_0 blocks"):
        model.quantize("int8")
    assert BlockLinear not in kinds(model).values()


@pytest.mark.native  # it reads a tokenizer
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_weights_that_are_not_finite(value: float, tmp_path: Path) -> None:
    """A scale would hide the weight's place; an encoder makes no token whose logits would show it."""
    tokenizers = pytest.importorskip("tokenizers")
    model = bert()
    model.encoder.layer[1].output.dense.weight.data[3, 5] = value
    tl.save(model.state_dict(), tmp_path / "model.safetensors")
    entries = {"model_type": "bert", "architectures": ["BertModel"], **SIZES, "intermediate_size": 96}
    (tmp_path / "config.json").write_text(json.dumps(entries), encoding="utf-8")
    tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0}, unk_token="a")).save(str(tmp_path / "tokenizer.json"))
    for loader in (BertModel, SentenceEncoder):
        with pytest.raises(ArgumentError, match=r"encoder\.layer\.1\.output\.dense: .* infinite or NaN"):
            loader.from_pretrained(tmp_path, quant="int8")


def gpt2(width: int = 64) -> GPT2:
    tl.manual_seed(0)
    sizes = {"vocab_size": 50, "n_positions": 32, "n_embd": width, "n_layer": 2, "n_head": 2}
    return GPT2(GPT2Config(**sizes, initializer_range=0.3)).eval()


@pytest.mark.parametrize("quant", ["int8", "q4_0", "q5_1"])
def test_transposed_layers_become_blocks(quant: str) -> None:
    """GPT-2's Conv1D, and its table, which is the head: the logits are those of the widened weights."""
    model, plain = gpt2().quantize(quant), gpt2()
    found = kinds(model)
    assert [found[f"transformer.h.{i}.{name}"] for i in range(2) for name in CONV1D] == [BlockConv1D] * 8
    assert found["transformer.wte"] is BlockEmbedding
    assert found["transformer.wpe"] is nn.Embedding
    for name, module in model.named_modules():
        if isinstance(module, BlockConv1D | BlockEmbedding):
            weight = plain.get_submodule(name).weight
            error = abs(module.weight.numpy() - weight.detach().numpy()).max()
            assert 0 < error < abs(weight.detach().numpy()).max() * (0.14 if quant == "q4_0" else 0.07)
            weight.data = tl.tensor(module.weight.numpy())
    with tl.no_grad():
        ours, theirs = (each(tl.tensor(IDS)).numpy() for each in (model, plain))
    assert cosines(ours.reshape(-1, 50), theirs.reshape(-1, 50)).min() > 0.995
    assert len(list(generate(model, [1, 2], max_tokens=5))) == 5


def test_transposed_rows_that_are_not_whole_blocks() -> None:
    model = gpt2(40)
    with pytest.raises(ArgumentError, match=r"transformer\.h\.0\.attn\.c_attn has rows of 40, not whole Q8_0 blocks"):
        model.quantize("int8")
    assert BlockConv1D not in kinds(model).values()


class Bias(PretrainedModel):
    """A model with a parameter only."""

    def __init__(self) -> None:
        super().__init__(None)
        self.bias = nn.Parameter(tl.zeros(3))


def test_a_model_without_linear_layers() -> None:
    with pytest.raises(ArgumentError, match="a Bias has no Linear layers"):
        Bias().quantize("int8")


def test_any_module_with_a_config() -> None:
    tl.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 3))
    x = tl.randn(5, 64)
    expected = model(x).detach().numpy()
    quantize_(model, BlockConfig())
    assert [type(model[i]) for i in (0, 2)] == [BlockLinear, BlockLinear]
    np.testing.assert_allclose(model(x).detach().numpy(), expected, atol=0.02)


def test_fused_blocks_can_be_demanded() -> None:
    model = bert(intermediate_size=96).quantize("int8", tl.bfloat16)
    with tl.no_grad(), kernels.require_fused(), pytest.raises(KernelUnavailable, match="bfloat16"):
        model(tl.tensor(IDS))
