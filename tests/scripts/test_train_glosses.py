"""scripts/train_glosses.py: WordNet's format, pairs, baseline, and training that can be interrupted."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from glosses import card, evaluation, wordnet
from glosses.corpus import Corpus, Rows
from glosses.evaluation import Task, TfIdf
from glosses.pairs import halves, pairs_of
from glosses.settings import Settings
from glosses.training import Training, export
from support.paths import ROOT

import tallow as tl
from tallow.errors import CheckpointError
from tallow.models import SentenceEncoder

LICENCE = "  1 A licence of Princeton University  \n  2 in two lines.  \n"
TINY = Settings(
    held_out=4, vocab_size=120, width=16, steps=6, batch_size=10, warmup_steps=2, validate_every=2, checkpoint_every=3
)
COLOURS = ("red", "green", "blue", "brown", "white", "black")
THINGS = ("box", "hat", "door", "boat", "lamp")


def line(offset: int, kind: str, words: str, pointers: str, gloss: str) -> str:
    count = len(words.split()) // 2
    return f"{offset:08d} 03 {kind} {count:02x} {words} {len(pointers.split()) // 4:03d} {pointers} | {gloss}  \n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dictionary of coloured things in WordNet's format."""
    nouns = [line(1, "n", "thing 0 object 0", "", 'all that can be seen; "she sees a thing"')]
    for i, colour in enumerate(COLOURS):
        for j, thing in enumerate(THINGS):
            gloss = f'a {thing} that somebody has painted in {colour}; "the {colour} {thing} is old"; "my {thing}"'
            nouns.append(line(100 + 10 * i + j, "n", f"{colour}_{thing} 0", "@ 00000001 n 0000", gloss))
    path = tmp_path_factory.mktemp("wordnet")
    (path / "data.noun").write_text(LICENCE + "".join(nouns))
    (path / "data.verb").write_text(LICENCE + line(5, "v", "see 0 behold 1", "+ 00000001 n 0102", "use the eyes"))
    (path / "data.adj").write_text(LICENCE + line(6, "s", "visible(p) 0", "& 00000007 a 0000", "that can be seen"))
    (path / "data.adv").write_text(LICENCE + line(8, "r", "there 0", "", "in that place"))
    return path


@pytest.fixture(scope="module")
def corpus(folder: Path) -> Corpus:
    return Corpus.make(TINY, folder)


# ---- the format


def test_line_of_a_data_file() -> None:
    synset = wordnet.parse_line(
        line(42, "s", "quick 0 very_fast(a) 1", "& 00000043 a 0000 + 00000044 r 0101", 'soon done; "a quick meal"; "x"')
    )
    assert synset.key == "a00000042"
    assert synset.names == ("quick", "very fast")
    assert synset.gloss == "soon done"
    assert synset.examples == ("a quick meal", "x")
    assert synset.related == (("&", "a00000043"), ("+", "r00000044"))
    assert synset.broader == []


def test_all_files_are_read(folder: Path) -> None:
    synsets = {synset.key: synset for synset in wordnet.read(folder)}
    assert len(synsets) == 1 + len(COLOURS) * len(THINGS) + 3
    assert synsets["n00000100"].broader == ["n00000001"]
    assert synsets["a00000006"].names == ("visible",)


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"data\.noun does not exist"):
        wordnet.read(tmp_path)
    (tmp_path / "data.noun").write_text(LICENCE + "<html>\n")
    with pytest.raises(CheckpointError, match=r"data\.noun, line 3: not a synset"):
        wordnet.read(tmp_path)
    with pytest.raises(CheckpointError, match="does not begin with WordNet's licence"):
        wordnet.save_licence(_with(tmp_path, "nothing\n"), tmp_path / "LICENSE")


def _with(folder: Path, text: str) -> Path:
    (folder / "data.noun").write_text(text)
    return folder


def test_licence_is_saved(folder: Path, tmp_path: Path) -> None:
    wordnet.save_licence(folder, tmp_path / "LICENSE")
    assert (tmp_path / "LICENSE").read_text() == "A licence of Princeton University\nin two lines.\n"


# ---- pairs


def test_pairs_by_hand() -> None:
    broad = wordnet.parse_line(line(1, "n", "thing 0 object 0", "", "all there is"))
    narrow = wordnet.parse_line(line(2, "n", "box 0", "@ 00000001 n 0000", 'it holds things; "a box of wood"'))
    pairs = pairs_of([broad, narrow], ())
    found = {kind: {tuple(pairs.texts[i] for i in pair) for pair in rows} for kind, rows in pairs.kinds.items()}
    assert found["names"] == {
        *(("thing, object", "all there is"), ("thing", "all there is"), ("object", "all there is")),
        ("box", "it holds things"),
    }
    assert found["examples"] == {("a box of wood", "it holds things"), ("a box of wood", "box")}
    assert found["broader"] == {
        *(("it holds things", "all there is"), ("it holds things", "thing, object")),
        ("box", "thing, object"),
    }
    assert found["related"] == {("thing", "object")}
    assert found["halves"] == set()
    assert halves("a b c d e f g h i") == ("a b c d", "e f g h i")


def test_held_out_texts_are_in_no_pair(corpus: Corpus) -> None:
    assert len(corpus.held_out) == TINY.held_out
    texts = set(corpus.pairs.texts)
    for key in corpus.held_out:
        synset = corpus.synsets[key]
        assert synset.gloss not in texts
        assert synset.examples[0] not in texts


def test_rows_are_padded_and_truncated(corpus: Corpus) -> None:
    rows = Rows(corpus.tokenizer, ["the red box", "the"], longest=2)
    ids, mask = rows[np.array([1, 0])]
    assert mask.tolist() == [[1, 0], [1, 1]]
    assert ids[0, 0] == ids[1, 0] == corpus.tokenizer.token_to_id("the")


# ---- evaluation


def test_score_by_hand() -> None:
    vectors = {"q": [1, 0], "r": [0, 1], "a": [1, 0], "b": [0.5, 0.9]}
    task = Task("", ["q", "r", "q"], ["a", "b", "b"])
    score = evaluation.score(task, lambda texts: np.float32([vectors[text] for text in texts]))
    assert score.first == pytest.approx(2 / 3)
    assert score.among_ten == 1
    assert score.reciprocal_rank == pytest.approx((1 + 1 + 1 / 2) / 3)


def test_tf_idf_by_hand() -> None:
    task = Task("", ["a b"], ["b b c"])
    encode = TfIdf(["a b", "b c", "c", "c d"]).encode_pair(task)
    a, b, c = math.log(5 / 2), math.log(5 / 3), math.log(5 / 4)
    twice = (1 + math.log(2)) * b
    expected = [[a, b, 0], [0, twice, c]]
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(encode(["A b!", "b, b c"]), expected, rtol=1e-6)


# ---- training


def test_interrupted_run_goes_on_bit_for_bit(corpus: Corpus, tmp_path: Path) -> None:
    uninterrupted = Training(TINY, corpus, tmp_path / "other.safetensors")
    losses = list(uninterrupted.run())
    first = Training(TINY, corpus, tmp_path / "run.safetensors")
    assert list(islice(first.run(), 5)) == losses[:5]  # the fourth and the fifth step are lost
    tl.manual_seed(99)
    second = Training(TINY, corpus, tmp_path / "run.safetensors")
    second.resume()
    assert list(second.run()) == losses[3:]
    assert second.curve == uninterrupted.curve
    assert tl.equal(second.model.embedding.weight, uninterrupted.model.embedding.weight)


def test_loss_falls(corpus: Corpus, tmp_path: Path) -> None:
    training = Training(replace(TINY, steps=40, batch_size=40, validate_every=10), corpus, tmp_path / "x.safetensors")
    list(training.run())
    assert training.curve[-1][1] < 0.8 * training.curve[0][1]


def test_exported_folder_is_the_trained_model(corpus: Corpus, folder: Path, tmp_path: Path) -> None:
    training = Training(TINY, corpus, tmp_path / "x.safetensors")
    list(training.run())
    export(training.model, corpus, tmp_path / "out")
    encoder = SentenceEncoder.from_pretrained(tmp_path / "out")
    texts = corpus.pairs.texts[:20]
    rows = Rows(corpus.tokenizer, texts, TINY.longest)
    with tl.no_grad():
        exact = training._vectors(rows, np.arange(len(texts)), 0.0).numpy()
    cosines = (encoder.encode(texts) * exact).sum(1)
    assert cosines.min() > 0.999  # int8 has 127 steps up to the largest weight
    scores = evaluation.table(corpus, encoder.encode)
    assert scores.count("\n") == 1 + len(evaluation.tasks(corpus))
    card.write(tmp_path / "out" / "README.md", training, corpus, scores)
    assert scores in (tmp_path / "out" / "README.md").read_text()


def test_script_names_the_folder_without_wordnet(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "scripts" / "train_glosses.py"), "--evaluate", "--wordnet", str(tmp_path)]
    process = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert process.returncode == 2
    assert f"{tmp_path}/data.noun does not exist" in process.stderr
    assert "apt-get install wordnet-base" in process.stderr
