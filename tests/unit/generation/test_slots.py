"""Slots: texts that share a model's memory are what each is alone."""

from __future__ import annotations

import numpy as np
import pytest

import tallow as tl
from tallow import devices
from tallow.errors import ArgumentError
from tallow.generation import generate, open_slots
from tallow.generation.prefix_pages import PAGE, PrefixPages
from tallow.generation.slots import LEAST_ROWS, SeparateSlots, SharedSlots
from tallow.models.causal_lm import CausalLM
from tallow.models.decoders.gpt2 import GPT2, GPT2Config
from tallow.models.decoders.llama import Llama, LlamaConfig
from tallow.models.decoders.mistral import Mistral, MistralConfig
from tallow.models.quantize import block_format
from tallow.nn.quantization import BlockConfig, quantize_

SIZES = {"vocab_size": 40, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
SIZES |= {"intermediate_size": 64, "max_position_embeddings": 200, "initializer_range": 0.5}


def llama() -> CausalLM:
    return Llama(LlamaConfig(**SIZES, num_key_value_heads=2)).eval()


def mistral() -> CausalLM:
    """A model whose queries see a window of 8 positions."""
    return Mistral(MistralConfig(**SIZES, num_key_value_heads=2, sliding_window=8)).eval()


def gpt2() -> CausalLM:
    sizes = {"vocab_size": 40, "n_positions": 200, "n_embd": 32, "n_layer": 2, "n_head": 4, "initializer_range": 0.5}
    return GPT2(GPT2Config(**sizes)).eval()


MODELS = {"llama": llama, "mistral": mistral, "gpt2": gpt2}
PROMPTS = [[1, 2, 3], [4], [5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15], [16, 17]]


@pytest.mark.parametrize("name", MODELS)
def test_texts_that_begin_at_different_times(name: str) -> None:
    tl.manual_seed(0)
    model = MODELS[name]()
    slots = open_slots(model, 2)
    texts: dict[int, list[int]] = {}
    new: dict[int, list[int]] = {}
    waiting = list(range(len(PROMPTS)))
    lengths = [90, 7, 30, 70]  # beyond the first memory of a growing cache
    by_slot: dict[int, int] = {}
    for _ in range(400):
        for slot in {0, 1} - set(by_slot):
            if waiting:
                by_slot[slot] = waiting.pop(0)
                slots.truncate(slot, 0)
                texts[by_slot[slot]] = []
                new[slot] = PROMPTS[by_slot[slot]]
        if not by_slot:
            break
        for slot, logits_V in zip(list(new), slots.read(new), strict=True):
            text = texts[by_slot[slot]]
            text.append(int(logits_V.argmax()))
            new[slot] = text[-1:]
            if len(text) == lengths[by_slot[slot]]:
                del by_slot[slot], new[slot]
    wanted = [list(generate(model, prompt, max_tokens=n)) for prompt, n in zip(PROMPTS, lengths, strict=True)]
    assert [texts[i] for i in range(len(PROMPTS))] == wanted


TEXT = [1 + i % 37 for i in range(3 * PAGE + 9)]


@pytest.mark.parametrize("dtype", [None, tl.float16, tl.int8], ids=str)
@pytest.mark.parametrize("name", MODELS)
def test_known_pages_are_copied(name: str, dtype: tl.dtype | None) -> None:
    tl.manual_seed(0)
    model = MODELS[name]()
    slots = open_slots(model, 2, pages=PrefixPages(1 << 20), cache_dtype=dtype)
    assert slots.copy_known(0, TEXT) == 0
    (wanted_V,) = slots.read({0: TEXT})
    assert len(slots.pages) == 3
    assert slots.pages.nbytes == 3 * slots.page_bytes
    other = [*TEXT[: 2 * PAGE + 3], *reversed(TEXT[: 2 * PAGE])]
    assert slots.copy_known(1, other) == 2 * PAGE
    (other_V,) = slots.read({1: other[2 * PAGE :]})
    slots.begin(1, "a salt")
    assert slots.copy_known(1, TEXT) == 0
    slots.begin(1)
    assert slots.copy_known(1, TEXT) == 3 * PAGE
    (logits_V,) = slots.read({1: TEXT[3 * PAGE :]})
    alone = open_slots(model, 1, cache_dtype=dtype)
    # Blocks that read several texts give the same bits with and without known pages.
    same = np.testing.assert_array_equal if isinstance(slots, SharedSlots) else close
    same(devices.to_host(logits_V), devices.to_host(wanted_V))
    same(devices.to_host(other_V), devices.to_host(alone.read({0: other})[0]))


def close(actual: np.ndarray, desired: np.ndarray) -> None:
    np.testing.assert_allclose(actual, desired, atol=2e-5)


@pytest.mark.cpu("on a GPU, the fused blocks take one text")
def test_pages_of_positions_that_were_read_in_other_ways_are_not_stored() -> None:
    tl.manual_seed(0)
    slots = open_slots(llama(), 2, pages=PrefixPages(1 << 20))
    for token in TEXT:
        slots.read({0: [token]})  # products of one row
    assert len(slots.pages) == 0
    slots.read({1: TEXT[:PAGE]})
    assert slots.copy_known(0, TEXT) == len(TEXT)  # a slot is left as it is
    assert slots.copy_known(1, TEXT[: PAGE + LEAST_ROWS - 1]) == PAGE


@pytest.mark.parametrize("name", MODELS)
def test_at_least_some_rows_are_left_to_read(name: str) -> None:
    slots = open_slots(MODELS[name](), 2, pages=PrefixPages(1 << 20))
    slots.read({0: TEXT[: 2 * PAGE]})
    assert slots.copy_known(1, TEXT[: 2 * PAGE]) == PAGE
    slots.truncate(1, 0)
    assert slots.copy_known(1, TEXT[: 2 * PAGE + LEAST_ROWS]) == 2 * PAGE


def test_not_a_number_is_not_for_other_texts() -> None:
    model = llama()
    slots = open_slots(model, 2, pages=PrefixPages(1 << 20))
    with tl.no_grad():
        model.model.norm.weight[0] = float("nan")
    slots.read({0: TEXT})
    assert len(slots.pages) == 0


def test_models_whose_keys_depend_on_the_length_of_the_text_store_none() -> None:
    scaling = {"rope_type": "dynamic", "factor": 2.0}
    model = Llama(LlamaConfig(**SIZES, num_key_value_heads=2, rope_scaling=scaling)).eval()
    slots = open_slots(model, 2, pages=PrefixPages(1 << 20))
    slots.read({0: TEXT})
    assert slots.copy_known(1, TEXT) == 0


@pytest.mark.cpu("on a GPU, the fused blocks take one text")
@pytest.mark.parametrize("quant", [None, "q4_0", "q8_0"])
def test_the_bits_of_a_text_do_not_depend_on_the_others(quant: str | None) -> None:
    tl.manual_seed(0)
    model = llama()
    if quant is not None:
        quantize_(model, BlockConfig(block_format(quant)))

    def logits(others: int) -> list[np.ndarray]:
        slots = open_slots(model, 8, batch_invariant=True)
        for slot in range(1, others + 1):
            slots.read({slot: [slot, 2 * slot]})
        rows = [slots.read({0: TEXT[:40]} | {slot: [slot] for slot in range(1, others + 1)})[0]]
        for i in range(5):
            rows += [slots.read({0: [TEXT[i]]} | {slot: [slot] for slot in range(1, others + 1)})[0]]
        return rows

    alone = logits(0)
    for others in range(1, 8):
        np.testing.assert_array_equal(logits(others), alone)


def test_models_that_cannot_be_batch_invariant_are_refused() -> None:
    with pytest.raises(ArgumentError, match="batch_invariant"):
        open_slots(gpt2(), 2, batch_invariant=True)


@pytest.mark.parametrize("name", MODELS)
def test_a_full_slot(name: str) -> None:
    slots = open_slots(MODELS[name](), 2, 10)
    slots.read({0: [1] * 10})
    with pytest.raises(ArgumentError, match="slot 0 holds 10 tokens"):
        slots.read({0: [1]})
    slots.read({1: [1]})


@pytest.mark.cpu("on a GPU, the fused blocks take one text")
def test_models_with_fused_blocks_read_all_texts_in_one_call() -> None:
    kinds = {name: type(open_slots(make(), 2)) for name, make in MODELS.items()}
    assert kinds == {"llama": SharedSlots, "mistral": SeparateSlots, "gpt2": SeparateSlots}


def test_at_least_one_slot() -> None:
    with pytest.raises(ArgumentError, match="0 slots"):
        open_slots(llama(), 0)


@pytest.mark.parametrize(
    "least", [False, pytest.param(True, marks=pytest.mark.cpu("on a GPU, the fused blocks take one text"))]
)
@pytest.mark.parametrize("name", MODELS)
def test_the_logits_of_every_token(name: str, least: bool) -> None:
    tl.manual_seed(0)
    model = MODELS[name]()
    slots = open_slots(model, 3, batch_invariant=least and name == "llama")
    slots.read({1: [7, 8]})
    last_V, every_TV, one_TV = map(devices.to_host, slots.read({0: TEXT[:5], 2: TEXT[:40], 1: [9]}, every={2, 1}))
    with tl.no_grad():
        wanted_TV = devices.to_host(model(tl.tensor([TEXT[:40]]))[0].array)
        other_V = devices.to_host(model(tl.tensor([[7, 8, 9]]))[0, -1].array)
    assert (last_V.shape, every_TV.shape, one_TV.shape) == ((40,), (40, 40), (1, 40))
    for actual, desired in ((every_TV, wanted_TV), (last_V, wanted_TV[4]), (one_TV[0], other_V)):
        np.testing.assert_allclose(actual, desired, atol=1e-4)  # fused blocks round differently from modules
