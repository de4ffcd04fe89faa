"""The engine of `tallow serve` on `cuda`: texts equal the CPU's; a graph for each number of texts, captured once."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Event
from typing import Any

import pytest
from support import streams_like

import tallow as tl
from tallow.generation import Sampler, generate
from tallow.generation.prefix_pages import PrefixPages
from tallow.generation.slots import RowSlots, SeparateSlots, open_slots
from tallow.models.decoders.falcon import Falcon, FalconConfig
from tallow.models.decoders.llama import Llama, LlamaConfig
from tallow.serving import TextEngine, TextModel, TextRequest, Update
from tallow.serving.catalog import Catalog
from tallow.text.stream_decoder import ByteDecoder, TextDecoder
from tallow.text.text_tokenizer import TextTokenizer

LLAMA = LlamaConfig(
    vocab_size=61,
    hidden_size=32,
    intermediate_size=64,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=200,
    initializer_range=0.4,
)
PROMPTS = [[3, 1, 4, 1, 5, 9, 2, 6], [5, 3], [5, 8, 9, 7], [2], list(range(40)), [7, 7, 1]]


class Words(TextTokenizer):
    """A tokenizer whose words are numbers."""

    def encode_prompt(self, text: str, *, add_special_tokens: bool = True) -> list[int]:
        return [1]

    def token_bytes(self) -> list[bytes | None]:
        return [b"%d " % token for token in range(LLAMA.vocab_size)]

    def stream_decoder(self, *, previous: Sequence[int] = (), skip_special_tokens: bool = True) -> TextDecoder:
        return ByteDecoder(lambda _, token: b"%d " % token)


@pytest.fixture
def model() -> Llama:
    tl.manual_seed(0)
    model = Llama(LLAMA).eval()
    model.tokenizer = Words()
    return model


@pytest.fixture
def graphs(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """The numbers of captures and replays on the stand-in."""
    counts = {"captures": 0, "replays": 0}
    launch, end_capture = streams_like.Graph.launch, streams_like.Stream.end_capture

    def counting_launch(self: Any, stream: Any = None) -> None:
        counts["replays"] += 1
        launch(self, stream)

    def counting_end(self: Any) -> Any:
        counts["captures"] += 1
        return end_capture(self)

    monkeypatch.setattr(streams_like.Graph, "launch", counting_launch)
    monkeypatch.setattr(streams_like.Stream, "end_capture", counting_end)
    return counts


def texts_of(model: Any, requests: list[TextRequest], slots: int, rounds: int = 1) -> tuple[list[str], TextEngine]:
    """Return what an engine generates, all requests at once, in the last of some rounds."""
    engine = TextEngine(TextModel("small", model, Words()), slots=slots, length=120)
    engine.start()
    for _ in range(rounds):
        texts = ["" for _ in requests]
        ended = [Event() for _ in requests]

        def deliver_to(index: int, texts: list[str], ended: list[Event]) -> Any:
            def deliver(update: Update) -> None:
                texts[index] += update.text
                if update.is_last:
                    assert update.error is None, update.error
                    ended[index].set()

            return deliver

        engine.submit_all([(request, deliver_to(i, texts, ended)) for i, request in enumerate(requests)])
        assert all(each.wait(60) for each in ended)
    engine.stop()
    return texts, engine


def requests() -> list[TextRequest]:
    lengths = 12, 5, 20, 9, 7, 16
    greedy = [TextRequest(prompt, count) for prompt, count in zip(PROMPTS, lengths, strict=True)]
    return [*greedy, TextRequest([4, 4], 10, Sampler(temperature=1.5, seed=3))]


@pytest.mark.parametrize("slots", [1, 3, 8, 11])
def test_texts_equal_the_cpus(cuda: str, model: Llama, slots: int) -> None:
    expected, _ = texts_of(model, requests(), slots)
    for request, text in zip(requests()[:-1], expected, strict=False):
        assert list(map(int, text.split())) == list(generate(model, request.tokens, max_tokens=request.max_tokens))
    found, engine = texts_of(model.to(cuda), requests(), slots)
    assert isinstance(engine._slots, RowSlots)
    assert found == expected


def test_a_graph_for_each_number_of_texts(cuda: str, model: Llama, graphs: dict[str, int]) -> None:
    """Steps of 7 texts, then fewer: graphs of 8, 4, 2 and 1 rows, each captured once."""
    _, engine = texts_of(model.to(cuda), requests(), 8, rounds=3)
    if tl.zeros(1, device=cuda).array.__class__.__module__ == "cupy":
        pytest.skip("counts are those of the stand-in")
    assert graphs["captures"] == 4
    assert graphs["captures"] + graphs["replays"] > 0.9 * engine.counters.steps


def test_graphs_are_captured_at_warm_up(cuda: str, model: Llama, graphs: dict[str, int]) -> None:
    engine = TextEngine(TextModel("small", model.to(cuda), Words()), slots=8)
    engine.start()
    Catalog(texts={"small": engine}).warm_up()
    engine.stop()
    assert graphs["captures"] in (0, 4)  # 0 with CuPy
    assert engine.counters.requests == 1 + 2 + 4 + 8


def test_known_prefixes_and_texts_that_end(cuda: str, model: Llama) -> None:
    model.to(cuda)
    slots = open_slots(model, 4, 100, pages=PrefixPages(1 << 20))
    prompt = [i % 50 for i in range(80)]
    (first,) = slots.read({2: prompt})
    assert slots.copy_known(0, prompt) == 64
    again, _ = slots.read({0: prompt[64:], 2: [1]})
    assert again.argmax().item() == first.argmax().item()
    slots.truncate(2, 80)
    one, other = slots.read({2: [5], 0: [5]})
    tl.testing.assert_close(tl.as_tensor(one), tl.as_tensor(other), rtol=1e-4, atol=1e-4)


def test_models_without_fused_blocks_have_a_cache_for_each_text(cuda: str) -> None:
    config = FalconConfig(
        vocab_size=31,
        hidden_size=24,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=80,
        alibi=True,
        multi_query=False,
    )
    model = Falcon(config).eval().to(cuda)
    assert isinstance(open_slots(model, 4), SeparateSlots)
