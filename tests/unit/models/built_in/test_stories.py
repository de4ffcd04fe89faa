"""The packaged language model generates complete stories on every platform."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import tallow as tl
from tallow.generation import Sampler, decode_stream, generate
from tallow.io.gguf import GGUF
from tallow.models.built_in import stories
from tallow.models.decoders.llama import Llama
from tallow.models.gguf import models as gguf_models
from tallow.models.gguf.export import save_gguf
from tallow.text.llama2c import Llama2cTokenizer

SEEDS = range(20)


@pytest.fixture(scope="module")
def model() -> Llama:
    return stories.load()[0]


@pytest.fixture(scope="module")
def tokenizer() -> Llama2cTokenizer:
    return stories.load()[1]


def tell(
    model: Llama, tokenizer: Llama2cTokenizer, prompt: str = "", sampler: Sampler | None = None
) -> tuple[str, bool]:
    """Return a story, and whether it ended before the context was full."""
    start = tokenizer.encode(prompt)
    tokens = list(generate(model, start, max_tokens=model.context_length, sample=sampler, stop_ids={1, 2}))
    text = "".join(decode_stream(tokenizer, [*start[1:], *tokens], previous=start[0]))
    return text, len(start) + len(tokens) <= model.context_length


def test_files_are_small() -> None:
    assert sum(path.stat().st_size for path in stories.FOLDER.iterdir() if path.is_file()) < 2_000_000


def test_weights_are_widened_and_fit_the_vocabulary(model: Llama, tokenizer: Llama2cTokenizer) -> None:
    assert {parameter.dtype for parameter in model.parameters()} == {tl.float32}
    assert tokenizer.vocab_size == model.vocab_size
    half, _ = stories.load(dtype=tl.float16)
    assert {parameter.dtype for parameter in half.parameters()} == {tl.float16}


def test_card_states_the_number_of_parameters(model: Llama) -> None:
    card = (stories.FOLDER / "README.md").read_text(encoding="utf-8")
    assert f"{sum(parameter.numel() for parameter in model.parameters()):,} parameters" in card


def test_the_model_writes_with_its_tokenizer(model: Llama, tokenizer: Llama2cTokenizer) -> None:
    assert model.stop_ids == {1, 2}
    text, _ = tell(model, tokenizer, "A busy cat")
    assert "A busy cat" + "".join(model.generate_text("A busy cat")) == text


@pytest.mark.native  # a page uses another engine for tokenizers
def test_a_gguf_file_in_memory_tells_the_same(model: Llama, tokenizer: Llama2cTokenizer, tmp_path: Path) -> None:
    save_gguf(model, path := tmp_path / "stories.gguf", tokenizer=tokenizer.gguf_form())
    same = gguf_models.language_model(GGUF(path.read_bytes()))
    assert same.folder is None
    assert [*same.generate_text("A dog", max_tokens=20)] == [*model.generate_text("A dog", max_tokens=20)]


@pytest.mark.parametrize(
    ("prompt", "hero"),
    [
        ("Once upon a time there was a shy otter named Pip", "Pip"),
        ("Nora was a curious girl", "Nora"),
        ("There was once a brave boy called Hugo. Hugo lived on a farm with many hens. One night", "Hugo"),
    ],
)
def test_greedy_story_is_about_its_hero_and_ends(
    model: Llama, tokenizer: Llama2cTokenizer, prompt: str, hero: str
) -> None:
    story, has_ended = tell(model, tokenizer, prompt)
    assert has_ended
    assert story.startswith(prompt)
    assert len(story) > 200
    assert story[-1] in '.!?"'
    assert len(re.findall(rf"\b{hero}\b", story)) >= 3


def test_sampled_stories_end_and_close_their_quotes(model: Llama, tokenizer: Llama2cTokenizer) -> None:
    generated = [tell(model, tokenizer, sampler=Sampler(0.8, top_p=0.9, seed=seed)) for seed in SEEDS]
    assert sum(has_ended for _, has_ended in generated) >= 0.9 * len(SEEDS)
    assert sum(story.count('"') % 2 == 0 for story, _ in generated) >= 0.9 * len(SEEDS)
    assert len({story for story, _ in generated}) == len(SEEDS)
