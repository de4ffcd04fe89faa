"""The engine: every text is what the library generates, whoever else is served."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from support.small_server import HANG_S, story_teller

from tallow.errors import ArgumentError, GrammarError, NumericError
from tallow.generation import Sampler, decode_stream, generate
from tallow.generation.constrain import Constraint, Vocabulary, json_schema, regex
from tallow.generation.prefix_pages import PAGE
from tallow.generation.sequence import Choice
from tallow.generation.slots import LEAST_ROWS
from tallow.serving import Busy, Closed, TextEngine, TextRequest, Update
from tallow.serving import engine as engine_module

PROMPTS = ("Once upon a time", "Lily", "Tom and his dog went to the park to play with a big red ball. The ball")


class Reader:
    """Collects the updates of a text."""

    def __init__(self) -> None:
        self.updates: list[Update] = []
        self.ended = threading.Event()

    def __call__(self, update: Update) -> None:
        self.updates.append(update)
        if update.is_last:
            self.ended.set()

    def wait(self) -> Reader:
        assert self.ended.wait(HANG_S), "the text does not end"
        return self

    @property
    def text(self) -> str:
        return "".join(update.text for update in self.updates)

    @property
    def last(self) -> Update:
        return self.updates[-1]


@pytest.fixture(scope="module")
def engine() -> Iterator[TextEngine]:
    engine = story_teller()
    engine.start()
    yield engine
    engine.stop()


def run(engine: TextEngine, *requests: TextRequest) -> list[Reader]:
    readers = [Reader() for _ in requests]
    engine.submit_all(list(zip(requests, readers, strict=True)))
    return [reader.wait() for reader in readers]


def request_of(engine: TextEngine, number: int, **options: Any) -> TextRequest:
    sample = Sampler(0.9, top_p=0.95, seed=number) if number % 2 else Sampler(0)
    prompt = engine.served.encode(PROMPTS[number % len(PROMPTS)])
    return TextRequest(prompt, 40 + 3 * number, sample, **options)


def expected(engine: TextEngine, request: TextRequest, sample: Sampler) -> str:
    """Return the text that the library generates."""
    prompt, served = request.tokens, engine.served
    options: dict[str, Any] = {"max_tokens": request.max_tokens, "stop_ids": served.stop_ids}
    tokens = generate(served.model, prompt, sample=sample, processors=request.processors, **options)
    return "".join(decode_stream(served.words, tokens, previous=prompt[-1]))


def test_texts_are_those_of_the_library_alone_and_among_others(engine: TextEngine) -> None:
    wanted = [expected(engine, request_of(engine, i), request_of(engine, i).sample) for i in range(8)]
    assert len(set(wanted)) > 4
    assert [run(engine, request_of(engine, i))[0].text for i in range(8)] == wanted
    together = run(engine, *(request_of(engine, i) for i in range(8)))
    assert [reader.text for reader in together] == wanted
    assert {reader.last.finish for reader in together} == {"length"}


def test_more_texts_than_slots_take_turns() -> None:
    engine = story_teller(slots=2)
    engine.start()
    together = run(engine, *(request_of(engine, i) for i in range(6)))
    wanted = [expected(engine, request_of(engine, i), request_of(engine, i).sample) for i in range(6)]
    engine.stop()
    assert [reader.text for reader in together] == wanted


def test_a_long_prompt_is_read_in_chunks_while_others_go_on(engine: TextEngine) -> None:
    prompt = engine.served.encode("Once there was a red ball and a blue ball. " * 16)
    assert len(prompt) > 128
    long = TextRequest(prompt, 10)
    readers = run(engine, request_of(engine, 0), long)
    assert readers[1].text == expected(engine, long, Sampler(0))
    assert readers[0].text == expected(engine, request_of(engine, 0), Sampler(0))


LONG = "Once there was a red ball and a blue ball in a big park. " * 9


def choices_of(reader: Reader) -> list[Choice]:
    """Return the tokens of a text with their log-probabilities."""
    return [choice for update in reader.updates for choice in update.choices]


@pytest.mark.parametrize("ending", ["", "Lily", "Tom and his dog went home."])
def test_a_known_prefix_changes_no_bit_of_the_answer(ending: str) -> None:
    engine, without = story_teller(slots=1, prefix_bytes=64 << 20), story_teller(slots=1)
    prompt = [engine.served.encode(LONG + end) for end in ("", ending)]
    assert len(prompt[0]) > 3 * PAGE
    for each in (engine, without):
        each.start()
    first, second = (run(engine, TextRequest(tokens, 12, top_logprobs=2))[0] for tokens in prompt)
    (wanted,) = run(without, TextRequest(prompt[1], 12, top_logprobs=2))
    for each in (engine, without):
        each.stop()
    known = (len(prompt[0]) - (0 if ending else LEAST_ROWS)) // PAGE * PAGE
    assert (first.last.cached, second.last.cached, wanted.last.cached) == (0, known, 0)
    assert choices_of(second) == choices_of(wanted)
    assert (engine.counters.hits, engine.counters.cached, without.counters.hits) == (1, known, 0)
    assert engine.most_pages == (64 << 20) * len(engine.pages) // engine.pages.nbytes


def test_texts_with_one_prompt_read_it_once_together() -> None:
    engine = story_teller(slots=4, prefix_bytes=64 << 20)
    prompt = engine.served.encode(LONG)
    readers = [Reader() for _ in range(4)]
    engine.submit_all([(TextRequest(prompt, 5), reader) for reader in readers])
    engine.start()
    texts = [reader.wait().text for reader in readers]
    engine.stop()
    assert len(set(texts)) == 1
    assert engine.counters.cached == 3 * ((len(prompt) - LEAST_ROWS) // PAGE * PAGE)


def test_prompts_of_every_length_are_read_in_chunks_of_enough_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = story_teller(slots=1, prefix_bytes=64 << 20)
    read, chunks = engine._slots.read, []
    monkeypatch.setattr(engine_module, "IDLE_CHUNK", 2 * PAGE)
    monkeypatch.setattr(engine._slots, "read", lambda new, every: (chunks.append(len(new[0])), read(new, every))[1])
    engine.start()
    for length in range(2 * PAGE - 1, 2 * PAGE + 2 * LEAST_ROWS):
        chunks.clear()
        run(engine, TextRequest([1] * length, 1))
        assert min(chunks) >= LEAST_ROWS, chunks
    engine.stop()


def test_with_batch_invariance_no_bit_depends_on_the_other_texts() -> None:
    engine = story_teller(slots=6, batch_invariant=True)
    engine.start()
    requests = [request_of(engine, i, top_logprobs=2) for i in range(6)]
    alone = [choices_of(run(engine, request_of(engine, i, top_logprobs=2))[0]) for i in range(6)]
    together = [choices_of(reader) for reader in run(engine, *requests)]
    engine.stop()
    assert together == alone


def test_waiting_requests_begin_by_priority() -> None:
    engine = story_teller(slots=1, by_priority=True)
    begun: list[int] = []
    prompt = engine.served.encode("Lily")
    priorities = (0, 1, -1, 0, -1)
    readers = [Reader() for _ in priorities]
    for i, (priority, reader) in enumerate(zip(priorities, readers, strict=True)):

        def deliver(update: Update, number: int = i, reader: Reader = reader) -> None:
            begun.append(number)
            reader(update)

        engine.submit(TextRequest(prompt, 1, priority=priority), deliver)
    engine.start()
    for reader in readers:
        reader.wait()
    engine.stop()
    assert begun == [2, 4, 0, 3, 1]


def test_a_step_reads_several_short_prompts() -> None:
    engine = story_teller(slots=8)
    readers = [Reader() for _ in range(8)]
    prompts = [engine.served.encode(f"{name} saw a") for name in ("Lily", "Tom", "Sam", "Ben") * 2]
    engine.submit_all([(TextRequest(prompt, 8), reader) for prompt, reader in zip(prompts, readers, strict=True)])
    engine.start()
    texts = [reader.wait().text for reader in readers]
    assert texts == [expected(engine, TextRequest(prompt, 8), Sampler(0)) for prompt in prompts]
    assert engine.counters.steps == 8
    engine.stop()


def test_a_constraint_of_one_text_leaves_the_others_alone(engine: TextEngine) -> None:
    form = json_schema({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})
    constraint = Constraint(form, Vocabulary(engine.served.words.token_bytes()), engine.served.stop_ids)
    readers = run(engine, request_of(engine, 0, processors=[constraint]), request_of(engine, 0))
    assert form.begins(readers[0].text)
    assert readers[1].text == expected(engine, request_of(engine, 0), Sampler(0))


def test_stop_strings_end_a_text_and_are_not_part_of_it(engine: TextEngine) -> None:
    whole = expected(engine, request_of(engine, 0), Sampler(0))
    stop = whole[10:16]
    (reader,) = run(engine, request_of(engine, 0, stop=[stop]))
    assert reader.text == whole[: whole.index(stop)]
    assert reader.last.finish == "stop"


def test_log_probabilities_are_those_of_the_model(engine: TextEngine) -> None:
    (reader,) = run(engine, request_of(engine, 0, top_logprobs=3))
    choices = [choice for update in reader.updates for choice in update.choices]
    assert len(choices) == 40
    assert all(choice.token == choice.top_logprobs[0][0] and len(choice.top_logprobs) == 3 for choice in choices)
    assert all(sum(np.exp(score) for _, score in choice.top_logprobs) <= 1 + 1e-6 for choice in choices)


def test_not_a_number_ends_one_text_only(engine: TextEngine) -> None:
    def broken(logits_V: Any, tokens: Sequence[int]) -> Any:
        return np.full_like(logits_V, np.nan) if len(tokens) > 20 else logits_V

    bad, good = run(engine, request_of(engine, 0, processors=[broken]), request_of(engine, 1))
    assert isinstance(bad.last.error, NumericError)
    assert good.text == expected(engine, request_of(engine, 1), request_of(engine, 1).sample)


def test_a_step_that_fails_ends_its_texts_and_the_engine_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = story_teller(slots=2)
    engine.start()
    with monkeypatch.context() as patch:
        patch.setattr(engine._slots, "read", lambda *new: (_ for _ in ()).throw(MemoryError("too little memory")))
        (failed,) = run(engine, request_of(engine, 0))
    assert isinstance(failed.last.error, MemoryError)
    assert run(engine, request_of(engine, 0))[0].text == expected(engine, request_of(engine, 0), Sampler(0))
    engine.stop()


def test_a_cancelled_text_ends_before_its_next_token() -> None:
    engine = story_teller(slots=1)
    reader = Reader()
    engine.submit(TextRequest(engine.served.encode("Lily"), 200), reader).cancel()
    engine.start()
    assert reader.wait().last.finish == "cancelled"
    assert not reader.text
    assert run(engine, request_of(engine, 0))[0].last.finish == "length"  # its slot is free
    engine.stop()


def test_a_full_queue_refuses_requests() -> None:
    engine = story_teller(slots=1, queue=2)  # not started: nothing leaves the queue
    for _ in range(2):
        engine.submit(request_of(engine, 0), Reader())
    with pytest.raises(Busy, match="2 requests") as caught:
        engine.submit(request_of(engine, 0), Reader())
    assert caught.value.retry_after_s >= 1


def test_many_texts_are_refused_before_anything_is_done_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """The event loop calls this: for 1,024 texts of a prompt of 250 tokens it took 60 ms."""
    engine = story_teller(slots=1, queue=2)
    monkeypatch.setattr(engine.served, "decoder", lambda *prompt, **options: 1 // 0)
    monkeypatch.setattr(engine, "max_tokens", lambda *prompt: 1 // 0)
    with pytest.raises(Busy):
        engine.submit_all([(request_of(engine, 0), Reader())] * 3)


def test_a_text_ends_at_the_time_limit_and_late_requests_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = story_teller(slots=1, time_limit_s=0.5)
    read = engine._slots.read
    monkeypatch.setattr(engine._slots, "read", lambda *new: (time.sleep(0.05), read(*new))[1])  # 12 s for a text
    readers = [Reader() for _ in range(3)]
    request = TextRequest(engine.served.encode("Lily"), 240)
    engine.submit_all([(request, reader) for reader in readers])
    engine.start()
    first, second, third = (reader.wait().last for reader in readers)
    assert first.finish == "length"
    assert 1 < len(readers[0].text) < 200
    assert isinstance(second.error, Busy)
    assert isinstance(third.error, Busy)
    engine.stop()


def test_a_cancelled_request_leaves_the_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = story_teller(slots=1, queue=2)
    read = engine._slots.read
    monkeypatch.setattr(engine._slots, "read", lambda *new: (time.sleep(0.05), read(*new))[1])
    readers = [Reader() for _ in range(2)]
    request = TextRequest(engine.served.encode("Lily"), 240)
    busy, waiting = engine.submit_all([(request, reader) for reader in readers])
    engine.start()
    waiting.cancel()
    assert readers[1].wait().last.finish == "cancelled"
    assert not readers[0].ended.is_set()
    busy.cancel()
    engine.stop()


def test_a_stopped_engine_ends_its_texts_and_takes_no_more() -> None:
    engine = story_teller(slots=1)
    engine.start()
    readers = [Reader() for _ in range(3)]
    engine.submit_all([(TextRequest(engine.served.encode("Lily"), 200), reader) for reader in readers])
    engine.stop()
    for reader in readers:
        last = reader.wait().last
        assert last.finish == "cancelled" or isinstance(last.error, Closed) or last.finish == "length"
    with pytest.raises(Closed):
        engine.submit(request_of(engine, 0), Reader())


@pytest.mark.parametrize("tokens", [[], [1] * 257, [99999], [-1]], ids=["empty", "too long", "unknown", "negative"])
def test_bad_prompts_are_refused_at_once(engine: TextEngine, tokens: list[int]) -> None:
    with pytest.raises(ArgumentError):
        engine.submit(TextRequest(tokens, 5), Reader())


class Endless:
    """A processor that prepares for ever."""

    def __init__(self) -> None:
        self.pieces = 0
        self.has_stopped = threading.Event()

    def __call__(self, logits_V: np.ndarray[Any, Any], tokens: Sequence[int]) -> np.ndarray[Any, Any]:
        return logits_V

    def prepare(self, tokens: Sequence[int]) -> Iterator[None]:
        try:
            while True:
                self.pieces += 1
                yield
        finally:
            self.has_stopped.set()


def test_texts_go_on_while_another_prepares_until_its_client_leaves() -> None:
    engine = story_teller(slots=2)
    endless, first = Endless(), Reader()
    waiting = engine.submit(TextRequest([1, 2, 3], 5, processors=[endless]), first)
    engine.start()
    others = run(engine, *(request_of(engine, i) for i in range(3)))
    assert [each.text for each in others] == [
        expected(engine, request_of(engine, i), request_of(engine, i).sample) for i in range(3)
    ]
    assert endless.pieces >= sum(len(each.updates) for each in others) // 2  # a piece between two steps, or more
    assert not first.updates
    waiting.cancel()
    assert first.wait().last.finish == "cancelled"
    assert endless.has_stopped.wait(HANG_S)
    pieces = endless.pieces
    run(engine, request_of(engine, 0))
    engine.stop()
    assert endless.pieces == pieces


def test_an_ambiguous_grammar_ends_its_own_text_only() -> None:
    engine = story_teller(slots=2)
    pattern = regex(".*[a-m].{40}|.*[aeiou].{40}|.*[bdfhjlnprtvxz].{40}|(.?){2000}")
    vocabulary = Vocabulary(engine.served.words.token_bytes())
    hostile = TextRequest([1, 2], 5, processors=[Constraint(pattern, vocabulary, engine.served.stop_ids)])
    readers = [Reader(), Reader()]
    engine.submit_all(list(zip([hostile, request_of(engine, 1)], readers, strict=True)))
    engine.start()
    ambiguous, other = (reader.wait() for reader in readers)
    engine.stop()
    assert isinstance(ambiguous.last.error, GrammarError)
    assert other.text == expected(engine, request_of(engine, 1), request_of(engine, 1).sample)
    assert engine.counters.failed == 1
