"""`explain` says for each layer whether it runs fused, and `require_fused` makes running modules an error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.cached_models import make

import tallow as tl
from tallow import kernels, nn
from tallow.devices import to_host
from tallow.errors import KernelUnavailable
from tallow.generation import generate, generate_batch
from tallow.models.causal_lm import CausalLM
from tallow.models.decoders.gpt2 import GPT2, GPT2Config
from tallow.models.decoders.lfm2_moe import Lfm2Moe, Lfm2MoeConfig
from tallow.models.decoders.llama import Llama, LlamaConfig
from tallow.models.decoders.mistral import Mistral, MistralConfig
from tallow.models.decoders.qwen import Qwen2, Qwen2Config, Qwen3, Qwen3Config
from tallow.models.decoders.qwen3_5 import Qwen3_5Moe, Qwen3_5MoeConfig
from tallow.models.encoders.bert import BertConfig, BertModel
from tallow.models.whisper import Whisper, WhisperConfig
from tallow.models.whisper.steps import Steps

pytestmark = pytest.mark.cpu("fused blocks of whole layers")

SIZES = {
    "vocab_size": 29,
    "hidden_size": 24,
    "intermediate_size": 40,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 16,
    "initializer_range": 0.3,
}
SMALL_GPT2 = GPT2Config(vocab_size=29, n_positions=16, n_embd=8, n_layer=1, n_head=2)
TOKENS = [1, 5, 28, 0, 7, 7, 11]
ATOL = 2e-5


def llama(**changes: Any) -> Llama:
    tl.manual_seed(0)
    return Llama(LlamaConfig(**SIZES | changes)).eval()


def bert(**changes: Any) -> BertModel:
    sizes = {name: SIZES[name] for name in ("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers")}
    return BertModel(BertConfig(**sizes | {"num_attention_heads": 4} | changes), add_pooling_layer=False).eval()


def whisper(**changes: Any) -> Whisper:
    both = {"layers": 2, "ffn_dim": 16, "attention_heads": 2}
    sizes = {f"{side}_{name}": size for side in ("encoder", "decoder") for name, size in both.items()}
    sources = {"vocab_size": 40, "num_mel_bins": 5, "d_model": 8, "max_source_positions": 6, "max_target_positions": 9}
    return Whisper(WhisperConfig(**sizes, **sources | changes)).eval()


def with_experts(kind: str) -> CausalLM:
    tl.manual_seed(0)
    sizes = SIZES | {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 12}
    if kind == "lfm2 moe":
        return Lfm2Moe(Lfm2MoeConfig(**sizes, num_dense_layers=1, layer_types=("conv", "full_attention"))).eval()
    sizes |= {"linear_num_key_heads": 2, "linear_num_value_heads": 2, "linear_key_head_dim": 8, "head_dim": 8}
    sizes |= {"linear_value_head_dim": 8, "layer_types": ("linear_attention", "full_attention")}
    return Qwen3_5Moe(Qwen3_5MoeConfig(**sizes, shared_expert_intermediate_size=10)).eval()


def hook(module: nn.Module) -> None:
    module.register_forward_hook(lambda module, args, result: result * 2)


def explained(model: Any, capsys: pytest.CaptureFixture[str], *args: Any) -> list[str]:
    capsys.readouterr()
    model.explain(*args)
    return capsys.readouterr().out.splitlines()


class TestExplain:
    def test_a_llama(self, capsys: pytest.CaptureFixture[str]) -> None:
        with kernels.off():
            lines = explained(llama(), capsys)
        assert lines == [
            "Llama on cpu, one token at a time",
            "  model.layers.0  fused: decode_block, array",
            "  model.layers.1  fused: decode_block, array",
        ]

    def test_a_layer_of_its_own_and_the_layers_beside_it(self, capsys: pytest.CaptureFixture[str]) -> None:
        model = llama()
        hook(model.model.layers[1].mlp)
        assert explained(model, capsys)[1:] == [
            "  model.layers.0  modules: model.layers.1.mlp has hooks",
            "  model.layers.1  modules: model.layers.1.mlp has hooks",
        ]

    @pytest.mark.parametrize(
        ("model", "reason"),
        [
            (lambda: llama(attention_bias=True), "o_proj has a bias, which the fused block does not take"),
            (lambda: llama(hidden_act="gelu"), "mlp.activation is gelu; the fused block has silu"),
            (lambda: llama().to(tl.float64), "is float64; the fused block takes bfloat16 or float16 or float32"),
            (lambda: llama(attention_dropout=0.5).train(), "self_attn is in training mode and has dropout"),
            (lambda: GPT2(SMALL_GPT2), "no fused block computes the layers of GPT2"),
        ],
        ids=["bias", "activation", "float64", "training", "gpt2"],
    )
    def test_reasons(self, model: Callable[[], CausalLM], reason: str, capsys: pytest.CaptureFixture[str]) -> None:
        lines = explained(model(), capsys)[1:]
        assert lines
        assert all(" modules: " in line and reason in line for line in lines)

    def test_windows_depend_on_the_length(self, capsys: pytest.CaptureFixture[str]) -> None:
        model = Mistral(MistralConfig(**SIZES | {"sliding_window": 5})).eval()
        assert "sees a window of 5 positions, and the cache holds 16" in explained(model, capsys)[1]
        assert "fused: decode_block" in explained(model, capsys, 5)[1]

    def test_a_bert(self, capsys: pytest.CaptureFixture[str]) -> None:
        model = bert()
        with kernels.off():
            title, *lines = explained(model, capsys)
        assert title == "BertModel on cpu, in inference"
        assert lines == [f"  encoder.layer.{i}  fused: encoder_blocks, array" for i in (0, 1)]
        model.encoder.layer[0].output.LayerNorm.eps = 0.1
        assert "its norms have eps" in explained(model, capsys)[2]
        assert "is in training mode" in explained(bert().train(), capsys)[1]
        assert "positions see only those before them" in explained(bert(is_decoder=True), capsys)[1]

    def test_a_whisper(self, capsys: pytest.CaptureFixture[str]) -> None:
        with kernels.off():
            lines = explained(whisper(), capsys)
        assert lines[1:] == [f"  model.decoder.layers.{i}  fused: cross_decode_block, array" for i in (0, 1)]
        assert (
            "activation is relu; the fused block has gelu" in explained(whisper(activation_function="relu"), capsys)[2]
        )

    def test_a_decoder_without_a_head(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert explained(llama().model, capsys)[1:] == ["  all layers  modules: no fused block computes a LlamaModel"]


class TestRequireFused:
    def test_language_models(self) -> None:
        model = llama()
        with kernels.require_fused():
            fused = list(generate(model, TOKENS[:3], max_tokens=5))
        assert fused == list(generate(model, TOKENS[:3], max_tokens=5))
        hook(model.model.layers[1].mlp)
        with kernels.require_fused(), pytest.raises(KernelUnavailable) as raised:
            list(generate(model, TOKENS[:3], max_tokens=5))
        assert str(raised.value).startswith("Llama does not run fused: model.layers.1.mlp has hooks\n  hint: ")
        assert len(list(generate(model, TOKENS[:3], max_tokens=5))) == 5

    @pytest.mark.parametrize(
        "model", [Qwen2(Qwen2Config(**SIZES)), Qwen3(Qwen3Config(**SIZES | {"head_dim": 8}))], ids=["qwen2", "qwen3"]
    )
    def test_biases_and_norms_of_heads_are_those_of_the_modules(self, model: CausalLM) -> None:
        tl.manual_seed(2)
        with tl.no_grad():
            for name, parameter in model.eval().named_parameters():
                if name.endswith(("bias", "q_norm.weight", "k_norm.weight")):
                    parameter.uniform_(-1, 1)
            expected = model(tl.tensor([TOKENS]))[0]
            cache = model.new_cache()
            with kernels.require_fused():
                logits = [model.next_logits([token], cache) for token in TOKENS]
        np.testing.assert_allclose(np.stack(logits), expected.numpy(), atol=ATOL, rtol=1e-4)

    @pytest.mark.parametrize("kind", ["lfm2", "lfm2 moe", "qwen3.5", "qwen3.5 moe"])
    def test_states_and_gates_are_those_of_the_modules(self, kind: str) -> None:
        model = with_experts(kind) if kind.endswith("moe") else make(kind)
        tl.manual_seed(2)
        with tl.no_grad():
            for name, parameter in model.named_parameters():
                if "norm" in name or name.endswith("bias"):
                    parameter.uniform_(-1, 1)
            with kernels.off():
                expected = model(tl.tensor([TOKENS]))[0].numpy()
            cache, batch = model.new_cache(), model.new_cache(batch=2, padding=[0, 2])
            with kernels.require_fused():
                logits = [model.next_logits([token], cache) for token in TOKENS]
                rows = [TOKENS, [3, 3, *TOKENS[:-2]]]  # fused, no part is padding alone
                both = [*np.moveaxis(model.last_logits([row[:3] for row in rows], batch, last=3), 1, 0)]
                both += [
                    model.last_logits([row[i : i + 1] for row in rows], batch)[:, 0] for i in range(3, len(TOKENS))
                ]
        np.testing.assert_allclose(np.stack(logits), expected, atol=ATOL, rtol=1e-4)
        np.testing.assert_allclose(np.stack(both)[:, 0], expected, atol=ATOL, rtol=1e-4)
        np.testing.assert_allclose(np.stack(both)[2:, 1], expected[:-2], atol=ATOL, rtol=1e-4)

    def test_batches_and_models_without_blocks(self) -> None:
        with kernels.require_fused():
            assert len(list(generate_batch(llama(), [[1, 2], [3]] * 8, max_tokens=3))) == 3 * 16
            with pytest.raises(KernelUnavailable, match="a batch of 257 texts; the fused blocks take 256"):
                list(generate_batch(llama(), [[1, 2]] * 257, max_tokens=3))
            gpt2 = GPT2(SMALL_GPT2)
            with pytest.raises(KernelUnavailable, match="no fused block computes the layers of GPT2"):
                list(generate(gpt2, [1, 2], max_tokens=3))

    def test_encoders(self) -> None:
        ids, model = tl.tensor([[1, 2, 3]]), bert()
        with kernels.require_fused():
            with tl.no_grad():
                model(ids)
                hook(model.encoder.layer[0])
                with pytest.raises(KernelUnavailable, match=r"BertEncoder does not run fused: layer\.0 has hooks"):
                    model(ids)
            with pytest.raises(KernelUnavailable, match="autograd records"):
                bert()(ids)
            with pytest.raises(KernelUnavailable, match="autocast is on"), tl.no_grad(), tl.autocast("cpu"):
                bert()(ids)

    def test_whisper(self) -> None:
        with tl.no_grad(), kernels.require_fused():
            for model, match in ((whisper(), None), (whisper(activation_function="relu"), "activation is relu")):
                steps = Steps(model, tl.randn(1, 6, 8))
                steps.start([[1, 2]], [-1])
                if match is None:
                    steps.next_logits([[1, 2, 3]])
                    continue
                with pytest.raises(KernelUnavailable, match=match):
                    steps.next_logits([[1, 2, 3]])


class TestStaleness:
    """Changes between two tokens take effect at the next."""

    @staticmethod
    def _replace_parameter(model: Llama) -> None:
        model.model.layers[0].mlp.up_proj.weight = nn.Parameter(tl.ones(40, 24) / 8)

    @staticmethod
    def _replace_module(model: Llama) -> None:
        tl.manual_seed(3)
        model.model.layers[1].self_attn.v_proj = nn.Linear(24, 12, bias=False)

    @staticmethod
    def _replace_layer(model: Llama) -> None:
        model.model.layers[0] = llama(initializer_range=0.1).model.layers[1]

    @staticmethod
    def _hook_a_layer(model: Llama) -> None:
        hook(model.model.layers[0].mlp)

    @staticmethod
    def _hook_before(model: Llama) -> None:
        model.model.norm.register_forward_pre_hook(lambda module, args: (args[0] * 0.5 + 1,))

    @staticmethod
    def _change_activation(model: Llama) -> None:
        model.model.layers[0].mlp.activation = nn.functional.relu

    @staticmethod
    def _change_eps(model: Llama) -> None:
        for norm in (model.model.norm, *(layer.input_layernorm for layer in model.model.layers)):
            norm.eps = 0.5

    @staticmethod
    def _replace_forward(model: Llama) -> None:
        mlp = model.model.layers[0].mlp
        forward = mlp.forward
        mlp.forward = lambda x: forward(x) * -2  # type: ignore[method-assign]

    @pytest.mark.parametrize(
        "change",
        [
            _replace_parameter,
            _replace_module,
            _replace_layer,
            _hook_a_layer,
            _hook_before,
            _change_activation,
            _change_eps,
            _replace_forward,
        ],
    )
    def test_llama(self, change: Any) -> None:
        model, untouched = llama(), llama()
        cache, other = model.new_cache(), untouched.new_cache()
        for token in TOKENS[:3]:
            before = [to_host(each.next_logits([token], kept)) for each, kept in ((model, cache), (untouched, other))]
            np.testing.assert_array_equal(*before)
        change(model)
        after = to_host(model.next_logits(TOKENS[3:4], cache))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Llama, "fused_limit", lambda model, cache: "this test")
            change(untouched)
            expected = to_host(untouched.next_logits(TOKENS[3:4], _without_decoder(other)))
        np.testing.assert_allclose(after, expected, atol=ATOL)

    @pytest.mark.parametrize("change", ["input_layernorm.weight", "linear_attn.A_log", "linear_attn.conv1d.weight"])
    def test_a_state_space_layer_that_is_written_in_place(self, change: str) -> None:
        """Blocks hold sums with the weights of norms, and read everything else where it is."""
        model = make("qwen3.5")
        model.next_logits([1], cache := model.new_cache())
        cache.truncate(0)
        with tl.no_grad(), kernels.require_fused():
            dict(model.model.layers[0].named_parameters())[change].add_(0.5)
            after = to_host(model.next_logits([2], cache))
            np.testing.assert_allclose(after, model(tl.tensor([[2]]))[0, 0].numpy(), atol=ATOL)

    @staticmethod
    def _write_a_norm(model: Llama) -> None:
        with tl.no_grad():
            model.model.layers[0].input_layernorm.weight.mul_(3)

    @staticmethod
    def _write_a_norm_through_data(model: Llama) -> None:
        model.model.norm.weight.data[:12] = 3

    @staticmethod
    def _load_other_weights(model: Llama) -> None:
        model.load_state_dict({name: value * -1.5 for name, value in model.state_dict().items()})

    @pytest.mark.parametrize("change", [_write_a_norm, _write_a_norm_through_data, _load_other_weights])
    @pytest.mark.parametrize("dtype", [tl.float32, tl.float16, tl.bfloat16])
    def test_weights_that_are_written_in_place(self, change: Any, dtype: tl.dtype) -> None:
        """Blocks hold copies of the norms of a model in half precision."""
        model, fresh = llama().to(dtype), llama().to(dtype)
        cache = model.new_cache()
        change(fresh)
        other = fresh.new_cache()
        for each in (fresh, model):
            each.next_logits([1], cache if each is model else other)
        cache.truncate(0)
        change(model)
        other.truncate(0)
        with kernels.require_fused():
            logits = [to_host(each.next_logits([2], kept)) for each, kept in ((model, cache), (fresh, other))]
        np.testing.assert_array_equal(*logits)

    def test_a_hook_that_is_removed_makes_room_for_the_fused_block(self) -> None:
        model = llama()
        cache = model.new_cache()
        handle = model.model.layers[0].register_forward_hook(lambda *_: None)
        for token, reason in ((1, "model.layers.0 has hooks"), (2, None)):
            model.next_logits([token], cache)
            assert cache.decoder is not None
            assert cache.decoder.reason == reason
            handle.remove()

    def test_a_row_of_padding_goes_through_the_modules(self) -> None:
        model = llama()
        cache = model.new_cache(padding=[2])
        for token in (0, 0, *TOKENS[:3]):
            got = to_host(model.next_logits([token], cache))
        expected = model.new_cache()
        for token in TOKENS[:3]:
            wanted = to_host(model.next_logits([token], expected))
        np.testing.assert_allclose(got, wanted, atol=ATOL)

    def test_whisper(self) -> None:
        with tl.no_grad():
            model = whisper()
            steps = Steps(model, tl.randn(1, 6, 8))
            steps.start([[1, 2]], [-1])
            first = steps.next_logits([[1, 2, 3]])
            model.decoder.embed_tokens.weight = nn.Parameter(tl.zeros(40, 8))  # the head too
            assert first.any()
            assert not steps.next_logits([[1, 2, 3, 4]]).any()


def _without_decoder(cache: Any) -> Any:
    cache.decoder = None
    return cache
