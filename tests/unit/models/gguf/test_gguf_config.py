"""Metadata of GGUF files that no model can have: the file, the key or the field, and the value are in the message."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pytest
from support.memory_limit import limit_peak_memory
from support.readers import Parts, _parts_of_gguf_bert, _parts_of_gguf_gpt2, _parts_of_gguf_llama, gguf_file

from tallow.errors import CheckpointError, TallowError, TallowWarning
from tallow.io.gguf import GGUF
from tallow.models import config
from tallow.models.gguf import config as gguf_config
from tallow.models.gguf import models as gguf_models
from tallow.models.gguf.metadata import Metadata
from tallow.models.gguf.names import NAMES, rows_by_group

MIB = 2**20


HUGE = {"llama.embedding_length": 2**31 - 2, "llama.feed_forward_length": 2**31 - 2}
HUGE |= {"llama.attention.key_length": 4, "llama.attention.value_length": 4}
YARN = {"llama.rope.scaling.type": "yarn", "llama.rope.scaling.factor": 2.0}


@pytest.mark.parametrize(
    ("parts", "changes", "message"),
    [
        (_parts_of_gguf_llama(), {"general.architecture": "rwkv6"}, "unsupported architecture 'rwkv6'; tallow reads"),
        (_parts_of_gguf_llama(), {"general.architecture": ["llama"]}, "unsupported architecture ['llama']"),
        (_parts_of_gguf_llama(), {"llama.attention.head_count": 0}, "num_attention_heads=0"),
        (_parts_of_gguf_llama(), {"llama.attention.head_count": 3}, "3 heads do not divide hidden_size=8"),
        (_parts_of_gguf_llama(), {"llama.attention.head_count": [2, 2]}, "num_attention_heads=[2, 2]"),
        (_parts_of_gguf_llama(), {"llama.attention.head_count_kv": -1}, "num_key_value_heads=-1"),
        (_parts_of_gguf_llama(), {"llama.attention.layer_norm_rms_epsilon": float("nan")}, "rms_norm_eps=nan"),
        (_parts_of_gguf_llama(), {"llama.rope.freq_base": float("inf")}, "rope_theta=inf"),
        (_parts_of_gguf_llama(), {"llama.rope.scaling.type": "dynamic"}, "rotary scaling 'dynamic'"),
        (_parts_of_gguf_llama(), {"llama.rope.scaling.type": "yarn"}, "lacks 'factor'"),
        (
            _parts_of_gguf_llama(),
            YARN | {"llama.rope.scaling.attn_factor": 0.5},
            "attn_factor is 0.5; tallow supports 1.0",
        ),
        (_parts_of_gguf_llama(), {"llama.context_length": 2**62}, f"max_position_embeddings={2**62}"),
        (_parts_of_gguf_llama(), {"llama.block_count": 2**30}, "block_count is 1073741824, and there are only"),
        (_parts_of_gguf_llama(), {"llama.block_count": None}, "missing num_hidden_layers"),
        (_parts_of_gguf_llama(), {"llama.embedding_length": 16}, "'blk.0.attn_q.weight' has the shape (8, 8)"),
        (_parts_of_gguf_llama(), {"llama.feed_forward_length": 2**20}, "'blk.0.ffn_gate.weight' has the shape"),
        (_parts_of_gguf_llama(), HUGE, "exceeds what this platform can address"),
        (
            _parts_of_gguf_llama(),
            {"llama.rope.dimension_count": 2},
            "llama.rope.dimension_count is 2; tallow supports 4",
        ),
        (
            _parts_of_gguf_llama(),
            {"llama.rope.scale_linear": 4.0},
            "rope.scale_linear is 4.0; tallow does not compute it",
        ),
        (_parts_of_gguf_llama(), {"llama.logit_scale": 0.5}, "llama.logit_scale is 0.5; tallow does not compute it"),
        (
            _parts_of_gguf_gpt2(),
            {"gpt2.final_logit_softcapping": 9.0},
            "final_logit_softcapping is 9.0; tallow does not",
        ),
        (_parts_of_gguf_gpt2(), {"gpt2.attention.head_count": 5}, "5 heads do not divide n_embd=32"),
        (_parts_of_gguf_gpt2(), {"gpt2.context_length": 2**20}, "'position_embd.weight' has the shape (8, 32)"),
        (_parts_of_gguf_gpt2(), {"general.architecture": "bert"}, "without token_types.weight"),
        (_parts_of_gguf_bert(), {"bert.attention.causal": 1}, "bert.attention.causal is 1; tallow supports False"),
        (_parts_of_gguf_bert(), {"tokenizer.ggml.padding_token_id": 5}, "pad_token_id=5"),
        (_parts_of_gguf_bert(), {"general.architecture": "phi3"}, "missing hidden_size"),
        (_parts_of_gguf_bert(), {"general.architecture": "falcon"}, "missing hidden_size"),
    ],
)
def test_values_out_of_range(parts: Parts, changes: dict[str, Any], message: str) -> None:
    metadata, tensors = parts
    changed = {key: value for key, value in (metadata | changes).items() if value is not None}
    raw = gguf_file(changed, tensors)
    with limit_peak_memory(MIB), pytest.raises(CheckpointError) as caught:
        gguf_models.load(raw)
    assert message in str(caught.value)
    assert "bytes in memory>" in str(caught.value)


ODD: tuple[Any, ...] = (0, -1, 3, 2**62, 1.5, float("nan"), 3e38, True, "x", "", [], [1], ["x", "y"], [1.5, -1.0])
SOME = {"attention.sliding_window": 4, "attention.value_length": 4, "attention.key_length": 4, "ssm.inner_size": 16}
SOME |= {"ssm.time_step_rank": 2, "ssm.state_size": 4, "ssm.conv_kernel": 4}
EXPERTS = {"expert_count": 2, "expert_used_count": 1, "expert_feed_forward_length": 4}


@pytest.mark.filterwarnings("ignore::tallow.errors.TallowWarning")
@pytest.mark.parametrize("more", [{}, SOME, SOME | EXPERTS])
@pytest.mark.parametrize("architecture", gguf_config._READERS)
def test_odd_values_of_an_architecture_are_read_or_refused(
    architecture: str, more: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No value of an entry that the reader asks for may raise another error."""
    entries, tensors = _parts_of_gguf_llama()
    sizes = {key.removeprefix("llama."): value for key, value in entries.items() if key.startswith("llama.")}
    metadata = entries | {f"{architecture}.{key}": value for key, value in (sizes | more).items()}
    metadata["general.architecture"] = architecture
    asked: dict[str, None] = {}
    get = Metadata.get

    def noted(self: Metadata, key: str) -> Any:
        asked[key] = None
        return get(self, key)

    monkeypatch.setattr(Metadata, "get", noted)
    file = GGUF(gguf_file(entries, tensors))

    def read(changes: dict[str, Any]) -> None:
        present = {key: value for key, value in (metadata | changes).items() if value is not None}
        monkeypatch.setattr(file, "metadata", present)
        with contextlib.suppress(TallowError):
            gguf_config.design_of(file)

    read({})
    done: set[str] = set()
    while new := asked.keys() - done:  # with another value the reader may ask for further entries
        for key in sorted(new):
            for value in (None, *ODD):
                read({f"{architecture}.{key}": value})
        done |= new
    assert done


def test_entries_that_nothing_reads_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "_reported", set())
    metadata, tensors = _parts_of_gguf_llama()
    quiet = {"llama.vocab_size": 3, "llama.rope.scale_linear": 1.0, "llama.rope.dimension_count": 4}
    raw = gguf_file(metadata | quiet | {"llama.my_note": "x", "general.my_note": "x"}, tensors)
    with pytest.warns(
        TallowWarning, match=r"GGUF files does not know .*'llama.rope.scale_linear' \(1.0\), 'llama.my_n"
    ):
        gguf_models.load(raw)
    gguf_models.load(raw)  # it warns once


@pytest.mark.parametrize("name", ["token_embd.weight", "token_types.weight", "cls.output.weight"])
def test_matrices_without_rows(name: str) -> None:
    metadata, tensors = _parts_of_gguf_bert()
    raw = gguf_file(metadata, tensors | {name: np.ones((), np.float32)})
    with pytest.raises(CheckpointError, match=f"has no {name} of two dims"):
        gguf_models.load(raw)


def test_a_language_model_is_one_that_writes() -> None:
    raw = gguf_file(*_parts_of_gguf_bert())
    with pytest.raises(CheckpointError, match=r"bytes in memory> is a Bert\w*, which does not write texts"):
        gguf_models.language_model(GGUF(raw))


def test_the_tensors_of_another_model_are_named() -> None:
    metadata, tensors = _parts_of_gguf_llama()
    others = {name: tensor for name, tensor in tensors.items() if name != "blk.0.attn_v.weight"}
    raw = gguf_file(metadata, others | {f"blk.0.x{i}.weight": np.ones(1, np.float32) for i in range(30)})
    with pytest.raises(CheckpointError) as caught:
        gguf_models.load(raw)
    lines = str(caught.value).splitlines()
    assert lines[1] == "  unknown tensor 'blk.0.x0.weight'"
    assert lines[11] == "  21 more"


@pytest.mark.parametrize("model", NAMES)
def test_names_in_both_directions(model: str) -> None:
    names = NAMES[model]
    for ours in names.outer:
        theirs = names.to_gguf(f"{ours}.weight")
        assert theirs is not None
        assert names.from_gguf(theirs) == f"{ours}.weight"
    for ours in names.inner:
        theirs = names.to_gguf(f"{names.layers}.12.{ours}.bias")
        assert theirs is not None
        assert theirs.startswith("blk.12.")
        assert names.from_gguf(theirs) == f"{names.layers}.12.{ours}.bias"
    for unknown in ("x", "", "blk.0.weight", "blk", "output.x.weight", "blk.0.x.weight"):
        assert names.from_gguf(unknown) is None
        assert names.to_gguf(unknown) is None


def test_rows_by_group() -> None:
    """Four query heads of two rows in two groups: q0 q1 k0 v0, q2 q3 k1 v1; files have q0 to q3, k0 k1, v0 v1."""
    expected = [0, 1, 2, 3, 8, 9, 12, 13, 4, 5, 6, 7, 10, 11, 14, 15]
    assert rows_by_group(4, 2, 2).tolist() == expected
