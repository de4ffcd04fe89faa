"""Training runs: learning-rate schedule, texts as rows, and resuming an interrupted run at any step."""

from __future__ import annotations

import math
import signal
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tallow as tl
from tallow.errors import ArgumentError, CheckpointError, DatasetError, NumericError
from tallow.models.causal_lm import CausalLM
from tallow.models.decoders.gpt2 import GPT2, GPT2Config
from tallow.models.decoders.llama import Llama, LlamaConfig
from tallow.training import LanguageModelSettings, LanguageModelTraining, Settings, Training, learning_rate_factor
from tallow.training.processes import Processes
from tallow.training.progress import interruption, sparkline
from tallow.training.texts import Rows, documents, tokens_of
from tallow.training.vocabulary import byte_vocabulary, character_vocabulary, characters_of


def test_learning_rate_rises_in_a_line_and_falls_along_a_cosine() -> None:
    settings = Settings(steps=110, warmup_steps=10, learning_rate=1.0, final_learning_rate=0.1)
    factors = [learning_rate_factor(step, settings) for step in (0, 4, 10, 60, 110)]
    assert factors == pytest.approx([0.1, 0.5, 1.0, 0.55, 0.1])


# ---- texts


def test_documents_are_files_and_what_stands_between_marks(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "2.txt").write_bytes("Zoë\r\n".encode())
    (tmp_path / "a.txt").write_text("one<|endoftext|>two<|endoftext|>\n", encoding="utf-8")
    (tmp_path / "c.json").write_text("{}", encoding="utf-8")
    assert list(documents([tmp_path, tmp_path / "c.json"])) == ["one", "two", "Zoë\r\n", "{}"]


def test_invalid_documents(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"has no \.txt file"):
        list(documents([tmp_path]))
    with pytest.raises(FileNotFoundError):
        list(documents([tmp_path / "nowhere.txt"]))
    (tmp_path / "latin1.txt").write_bytes("Zoë".encode("latin-1"))
    with pytest.raises(DatasetError, match=r"latin1\.txt is not UTF-8: byte 0xeb at 2"):
        list(documents([tmp_path]))


def test_bytes_and_marks() -> None:
    assert tokens_of(["ë", "ab"], byte_vocabulary()).tolist() == [256, 0xC3, 0xAB, 256, 97, 98, 256]


def test_characters_are_tokens() -> None:
    characters = characters_of(["cab 😀", "aë"])
    assert characters == [" ", "a", "b", "c", "ë", "😀"]
    vocabulary = character_vocabulary(characters)
    assert (vocabulary.size, vocabulary.end_of_text) == (7, 6)
    assert tokens_of(["😀a", "ë"], vocabulary).tolist() == [6, 5, 1, 6, 4, 6]
    assert vocabulary.encode("xa~\U0001f601b!").tolist() == [1, 2], "unknown characters are dropped"
    assert vocabulary.encode("").tolist() == []


def test_each_time_through_has_each_row_once() -> None:
    rows = Rows(np.arange(3 * 5 + 3, dtype=np.int32), context=3, seed=7)
    assert len(rows) == 5
    assert rows[np.array([0, 1])].tolist() == [[0, 1, 2, 3], [3, 4, 5, 6]]
    times = [[row[0] // 3 for row in rows.at(np.arange(5 * time, 5 * time + 5)).tolist()] for time in range(4)]
    assert all(sorted(order) == [0, 1, 2, 3, 4] for order in times)
    assert len(set(map(tuple, times))) > 1
    across = rows.at(np.array([4, 5]))
    assert (across[:, 0] // 3).tolist() == [times[0][4], times[1][0]]


def test_too_little_text() -> None:
    assert len(Rows(np.zeros(4, np.int32), context=3)) == 1
    with pytest.raises(DatasetError, match="3 tokens of text, but a row of context 3 needs 4"):
        Rows(np.zeros(3, np.int32), context=3)


# ---- runs


class Line(Training):
    """Fits a line to random points: a minimal training run."""

    def __init__(self, settings: Settings, checkpoint: Path, spoil_at: int = -1) -> None:
        tl.manual_seed(settings.seed)
        self.model = tl.nn.Linear(1, 1)
        self._points = tl.Generator().manual_seed(settings.seed)
        self._spoil_at = spoil_at
        optimizer = tl.optim.AdamW(self.model.parameters(), lr=settings.learning_rate)
        super().__init__(settings, self.model, optimizer, checkpoint, self._points)

    def learn(self) -> tuple[float]:
        x = tl.rand(self.settings.batch_size, 1, generator=self._points)
        loss = ((self.model(x) - 2 * x - 1) ** 2).mean() * (math.nan if self.step == self._spoil_at else 1.0)
        loss.backward()
        return (loss.item(),)

    def validate(self) -> float:
        return abs(self.model(tl.tensor([[1.0]])).item() - 3)


SETTINGS = Settings(steps=12, warmup_steps=2, learning_rate=0.1, validate_every=4, checkpoint_every=5)


def test_an_interrupted_run_resumes_bit_for_bit(tmp_path: Path) -> None:
    uninterrupted = Line(SETTINGS, tmp_path / "whole")
    losses = list(uninterrupted.run())
    assert [row[0] for row in uninterrupted.curve] == [4, 8, 12]
    assert uninterrupted.curve[0][1] == pytest.approx(sum(loss for (loss,) in losses[:4]) / 4)
    assert uninterrupted.curve[-1][-1] == uninterrupted.validate() < uninterrupted.curve[0][-1]

    first = Line(SETTINGS, tmp_path / "parts")
    list(islice(first.run(), 7))  # steps after the checkpoint at 5 are lost
    second = Line(SETTINGS, tmp_path / "parts")
    second.resume()
    assert second.step == 5
    assert list(islice(second.run(stop=lambda: second.step == 8), 99)) == losses[5:9]  # requested in the ninth step
    third = Line(SETTINGS, tmp_path / "parts")
    third.resume()
    assert third.step == 9
    assert list(third.run()) == losses[9:]
    assert third.curve == uninterrupted.curve
    assert all(map(tl.equal, third.model.parameters(), uninterrupted.model.parameters()))


def test_a_nan_loss_ends_the_run_before_it_is_saved(tmp_path: Path) -> None:
    run = Line(SETTINGS, tmp_path / "run", spoil_at=6)
    with pytest.raises(NumericError, match=r"step 7: the loss is nan and the norm of the gradients nan"):
        list(run.run())
    assert all(bool(each.isfinite().all()) for each in run.model.parameters())
    again = Line(SETTINGS, tmp_path / "run")
    again.resume()
    assert again.step == 5


def test_other_settings_are_named(tmp_path: Path) -> None:
    Line(SETTINGS, tmp_path / "run").save()
    Line(replace(SETTINGS, checkpoint_every=1), tmp_path / "run").resume()
    with pytest.raises(ArgumentError, match=r"other settings\n  learning_rate: 0\.1 there, 0\.2 here\n  hint"):
        Line(replace(SETTINGS, learning_rate=0.2), tmp_path / "run").resume()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("step", -1),
        ("scaler", None),
        ("curve", [["x"]]),
        ("sums", 3),
        ("history", [[]]),
        ("recent", None),
        ("seconds", "1"),
        ("settings", 0),
    ],
)
def test_a_checkpoint_of_something_else_is_refused_before_anything_changes(
    name: str, value: Any, tmp_path: Path
) -> None:
    run = Line(SETTINGS, tmp_path / "run")
    list(islice(run.run(), 6))
    progress = tl.load_checkpoint(run.checkpoint) | {name: value}
    tl.save_checkpoint(run.checkpoint, **run._state(), **progress)
    again = Line(SETTINGS, tmp_path / "run")
    before = [each.clone() for each in again.model.parameters()]
    with pytest.raises(CheckpointError, match=f"is not the checkpoint of such a run: its {name}"):
        again.resume()
    assert all(map(tl.equal, again.model.parameters(), before))


# ---- language models

ROWS = Rows(np.random.default_rng(0).integers(0, 11, 200).astype(np.int32), context=6)


def llama() -> CausalLM:
    config = LlamaConfig(
        vocab_size=11,
        hidden_size=8,
        intermediate_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=6,
    )
    tl.manual_seed(0)
    return Llama(config)


def gpt2_with_dropout() -> CausalLM:
    """A GPT-2 that drops half of its activations."""
    rates = dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), 0.5)
    tl.manual_seed(0)
    return GPT2(GPT2Config(vocab_size=11, n_positions=6, n_embd=8, n_layer=1, n_head=2, **rates))


def language_model(tmp_path: Path, model: CausalLM | None = None, **options: Any) -> LanguageModelTraining:
    parts = options.pop("parts", 1)
    settings = LanguageModelSettings(
        **{"steps": 4, "batch_size": 8, "learning_rate": 1e-2, "warmup_steps": 0, "context": 6} | options,
        model={},
        texts=ROWS.digest(),
    )
    return LanguageModelTraining(settings, model or llama(), ROWS, tmp_path / "run", Processes(), ROWS, parts)


def test_dropout_resumes_bit_for_bit(tmp_path: Path) -> None:
    uninterrupted = language_model(tmp_path, gpt2_with_dropout())
    losses = list(uninterrupted.run())
    list(language_model(tmp_path, gpt2_with_dropout()).run(stop=lambda: True))  # one step
    tl.manual_seed(99)
    again = language_model(tmp_path, gpt2_with_dropout())
    again.resume()
    assert again.step == 1
    assert list(again.run()) == losses[1:]
    assert all(map(tl.equal, again.model.parameters(), uninterrupted.model.parameters()))


def test_gradient_accumulation_equals_the_whole_batch(tmp_path: Path) -> None:
    uninterrupted, parted = language_model(tmp_path), language_model(tmp_path, parts=4)
    np.testing.assert_allclose([*parted.run()], [*uninterrupted.run()], rtol=1e-5)
    for one, other in zip(uninterrupted.model.parameters(), parted.model.parameters(), strict=True):
        np.testing.assert_allclose(other.detach().numpy(), one.detach().numpy(), atol=1e-4)
    with pytest.raises(ArgumentError, match=r"a batch of 8 rows for 1 processes, in 3 parts each\n.*multiple of 3"):
        language_model(tmp_path, parts=3)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_sixteen_bits_are_near(dtype: str, tmp_path: Path) -> None:
    exact = [loss for (loss,) in language_model(tmp_path).run()]
    near = language_model(tmp_path, dtype=dtype)
    assert [loss for (loss,) in near.run()] == pytest.approx(exact, rel=0.02)
    assert {each.dtype for each in near.model.parameters()} == {tl.float32}
    assert near.curve[-1][-1] < exact[0]


# ---- progress and signals


@pytest.mark.parametrize("points", [3, 500])
def test_history_has_the_means_of_all_steps_also_after_a_break(
    points: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tallow.training.run.POINTS", points)
    run = Line(SETTINGS, tmp_path / "run")
    losses = [loss for (loss,) in islice(run.run(), 5)]
    run = Line(SETTINGS, tmp_path / "run")
    run.resume()
    losses += [loss for (loss,) in run.run()]
    every = math.ceil(SETTINGS.steps / points)
    ends = [*range(every, SETTINGS.steps, every), SETTINGS.steps]
    assert [row[0] for row in run.history] == ends
    for start, (end, mean) in zip([0, *ends[:-1]], run.history, strict=True):
        assert mean == pytest.approx(np.mean(losses[start:end]))


def test_sparkline() -> None:
    assert sparkline([1, 2, 3, 4, 5, 6, 7, 8]) == "▁▂▃▄▅▆▇█"
    assert sparkline([8.0, 1.0]) == "█▁"
    assert sparkline([2.5, 2.5, 2.5]) == "▁▁▁"
    assert sparkline([7, 9, 1, 1, 3, 5], width=3) == "█▁▄"  # of 8, 1 and 4, in sevenths
    assert sparkline([]) == ""


@pytest.mark.native
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_the_first_signal_is_kept_and_the_second_acts(name: str) -> None:
    number = getattr(signal, name, None)
    if number is None:
        pytest.skip(f"this system has no {name}")
    usual = signal.default_int_handler if name == "SIGINT" else signal.SIG_DFL
    before = signal.signal(number, usual)
    try:
        with interruption() as stop:
            assert not stop()
            signal.raise_signal(number)
            assert stop()
            assert stop.signal == number
            with pytest.raises(KeyboardInterrupt if name == "SIGINT" else SystemExit) as raised:
                signal.raise_signal(number)
        if isinstance(raised.value, SystemExit):
            assert raised.value.code == 128 + number
        assert signal.getsignal(number) is usual
    finally:
        signal.signal(number, before)


@pytest.mark.native
def test_an_ignored_signal_stays_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Signals are ignored under nohup, and in background jobs of a shell."""
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with interruption() as stop:
            signal.raise_signal(signal.SIGTERM)
            assert not stop()
    finally:
        signal.signal(signal.SIGTERM, before)
