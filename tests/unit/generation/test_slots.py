"""Slots: texts that share a model's memory are what each is alone."""

from __future__ import annotations

import pytest

import tallow as tl
from tallow.errors import ArgumentError
from tallow.generation import generate, open_slots
from tallow.generation.slots import SeparateSlots, SharedSlots
from tallow.models.causal_lm import CausalLM
from tallow.models.gpt2 import GPT2, GPT2Config
from tallow.models.llama import Llama, LlamaConfig
from tallow.models.mistral import Mistral, MistralConfig

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
                prompt = PROMPTS[by_slot[slot]]
                texts[by_slot[slot]] = []
                new[slot] = prompt[slots.begin(slot, prompt) :]
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


@pytest.mark.parametrize("name", MODELS)
def test_a_shared_prefix_is_known(name: str) -> None:
    tl.manual_seed(0)
    model = MODELS[name]()
    slots = open_slots(model, 2)
    slots.read({1: [1, 2, 3, 4, 5]})
    assert slots.best([0, 1], [1, 2, 3, 9]) == 1
    assert slots.begin(1, [1, 2, 3, 9]) == 3
    (logits_V,) = slots.read({1: [9]})
    assert int(logits_V.argmax()) == next(generate(model, [1, 2, 3, 9], max_tokens=1))
    assert slots.begin(1, [1, 2, 3]) == 2  # the last token is always read: its logits are wanted


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
