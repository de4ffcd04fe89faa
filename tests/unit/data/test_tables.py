"""Tables and texts: CSVDataset, NPZDataset, TinyStories, TokenBlocks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.serving import Short, serve

import tallow as tl
from tallow.data import CSVDataset, DataLoader, NPZDataset, TinyStories, TokenBlocks
from tallow.data.stories import read_stories
from tallow.errors import ArgumentError, CheckpointError, DatasetError, ShapeError

IRIS = """sepal length,"petal, width",species
5.1,0.2,setosa
"7.0", 1.4 ,versicolor

6.3,"2.5","setosa"
"""


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8", newline="")
    return path


# -------------------------------------------------------------------------------------------------------------- CSV


def test_csv_rows_are_vectors_of_the_columns(tmp_path: Path) -> None:
    dataset = CSVDataset(write(tmp_path / "t.csv", "a,b,c\n1,2,3\n4,5,6.5\n"))
    assert len(dataset) == 2
    assert dataset.columns == ["a", "b", "c"]
    (row,) = dataset[1]
    assert row.dtype is tl.float32
    assert row.tolist() == [4, 5, 6.5]


def test_csv_quotes_spaces_and_names_of_classes(tmp_path: Path) -> None:
    dataset = CSVDataset(write(tmp_path / "iris.csv", IRIS), target="species", target_dtype=str)
    assert dataset.columns == ["sepal length", "petal, width"]
    assert dataset.classes == ["setosa", "versicolor"]
    rows, kinds = next(iter(DataLoader(dataset, batch_size=3)))
    np.testing.assert_allclose(rows.numpy(), [[5.1, 0.2], [7.0, 1.4], [6.3, 2.5]], rtol=1e-6)
    assert kinds.dtype is tl.int64
    assert kinds.tolist() == [0, 1, 0]


def test_csv_columns_are_chosen_by_name_or_number(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "a;b;c\n1;2;3\n4;5;6\n")
    dataset = CSVDataset(path, columns=["c", 0], target=1, dtype=tl.float64, target_dtype=tl.int64, delimiter=";")
    assert dataset.columns == ["c", "a"]
    row, target = dataset[0]
    assert row.dtype is tl.float64
    assert row.tolist() == [3, 1]
    assert target.dtype is tl.int64
    assert target.item() == 2
    assert CSVDataset(path, columns=[], target="b", delimiter=";")[1][0].shape == (0,)


def test_csv_without_a_header(tmp_path: Path) -> None:
    dataset = CSVDataset(write(tmp_path / "t.csv", "1,2\r\n3,4\r\n"), target=1, header=False, dtype=int)
    assert dataset.columns == [0]
    assert [(row.tolist(), target.item()) for row, target in dataset] == [([1], 2), ([3], 4)]


def test_csv_of_a_byte_order_mark_and_of_a_header_alone(tmp_path: Path) -> None:
    dataset = CSVDataset(write(tmp_path / "t.csv", "\ufeffa,b\n"), columns=["a"])
    assert len(dataset) == 0
    assert dataset.tensors[0].shape == (0, 1)


@pytest.mark.parametrize(
    ("text", "arguments", "message"),
    [
        ("a,b\n1,2\n3,x\n", {}, r"t\.csv, line 3, column 'b': 'x' is not a number of tallow.float32"),
        ("a,b\n1,\n", {}, "line 2, column 'b': '' is not a number"),
        ("a,b\n\n1,2.5\n", {"dtype": tl.int64}, r"line 3, column 'b': '2\.5' is not a number of tallow.int64"),
        ("1,2\n3,x\n", {"header": False}, "line 2, column 1: 'x'"),
        ("a,b\n1,x\n", {"target": "b"}, "line 2, column 'b': 'x'"),
        ("a,b\n1,2\n1,2,3\n", {}, "line 3: 3 cells; the first line has 2"),
        ('a,b\n"1,2\n', {}, "after line 2"),
        ("a\n300\n", {"dtype": tl.uint8}, "a number out of range for tallow.uint8"),
        ("", {}, "the file is empty"),
    ],
)
def test_csv_errors_name_the_line(tmp_path: Path, text: str, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(DatasetError, match=message):
        CSVDataset(write(tmp_path / "t.csv", text), **arguments)


def test_csv_is_utf8(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b"a\xff\n1\n")
    with pytest.raises(DatasetError, match="UTF-8"):
        CSVDataset(tmp_path / "t.csv")


@pytest.mark.parametrize("column", ["d", 3, -1])
def test_csv_columns_must_be_there(tmp_path: Path, column: Any) -> None:
    path = write(tmp_path / "t.csv", "a,b,b\n1,2,3\n")
    with pytest.raises(ArgumentError, match=r"no columns .*; the file has \['a', 'b', 'b'\]"):
        CSVDataset(path, target=column)
    with pytest.raises(ArgumentError, match="2 columns 'b'"):
        CSVDataset(path, columns=["b"])


# -------------------------------------------------------------------------------------------------------------- NPZ


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz_rows_are_of_all_arrays(tmp_path: Path, save: Any) -> None:
    x, y = np.arange(6, dtype=np.float32).reshape(3, 2), np.array([7, 8, 9])
    save(tmp_path / "t.npz", x=x, y=y, other=np.zeros(5))
    dataset = NPZDataset(tmp_path / "t.npz", ["y", "x"])
    label, row = dataset[2]
    assert label.item() == 9
    assert row.tolist() == [4, 5]
    rows = next(iter(DataLoader(dataset, batch_size=2)))[1]
    rows += 1  # which must not change the file
    assert NPZDataset(tmp_path / "t.npz", ["x"])[0][0].tolist() == [0, 1]


def test_npz_arrays_must_be_there_and_of_one_length(tmp_path: Path) -> None:
    np.savez(tmp_path / "t.npz", x=np.zeros(3), y=np.zeros(4))
    with pytest.raises(ShapeError, match="size mismatch"):
        NPZDataset(tmp_path / "t.npz")
    with pytest.raises(ArgumentError, match="unknown array z; the file has x, y"):
        NPZDataset(tmp_path / "t.npz", ["x", "z"])
    (tmp_path / "t.npz").write_bytes(b"PK no archive")
    with pytest.raises(CheckpointError):
        NPZDataset(tmp_path / "t.npz")


# ---------------------------------------------------------------------------------------------------------- stories


@pytest.mark.parametrize("folder", [".", "TinyStories"])
def test_stories_are_the_texts_between_separators(tmp_path: Path, folder: str) -> None:
    (tmp_path / folder).mkdir(exist_ok=True)
    text = "Once upon\na time.\n<|endoftext|>\n\n<|endoftext|>\nThe énd.\n<|endoftext|>"
    write(tmp_path / folder / "TinyStories-valid.txt", text)
    stories = TinyStories(tmp_path, split="valid")
    assert list(stories) == ["Once upon\na time.", "The énd."]
    assert list(stories) == list(stories)


@pytest.mark.parametrize("chunk", [1, 2, 5, 13, 64])
def test_separators_are_found_across_chunks(tmp_path: Path, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tallow.data.stories.CHUNK_CHARACTERS", chunk)
    expected = [f"story {i} " * (i + 1) for i in range(9)]
    path = write(tmp_path / "t.txt", "<|endoftext|>".join(expected))
    assert list(read_stories(path)) == [story.strip() for story in expected]


def test_stories_are_not_read_ahead(tmp_path: Path) -> None:
    path = tmp_path / "TinyStories-train.txt"
    path.write_bytes(b"first<|endoftext|>" + b"x" * 2**20 + b"\xff")
    stories = iter(TinyStories(tmp_path))
    assert next(stories) == "first"
    with pytest.raises(DatasetError, match="is not UTF-8"):
        next(stories)


def test_a_file_without_separators_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tallow.data.stories.MAX_STORY_CHARACTERS", 1000)
    path = write(tmp_path / "t.txt", "x" * 100_000)
    with pytest.raises(DatasetError, match=r"no <\|endoftext\|> in \d+ characters"):
        list(read_stories(path))


def test_stories_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"no TinyStories-train\.txt in"):
        TinyStories(tmp_path)
    with pytest.raises(ArgumentError, match="'train' or 'valid', got 'test'"):
        TinyStories(tmp_path, split="test")


@pytest.mark.native
@pytest.mark.filterwarnings("ignore:This DataLoader will create")
def test_workers_share_the_stories(tmp_path: Path) -> None:
    write(tmp_path / "TinyStories-train.txt", "<|endoftext|>".join(f"s{i}" for i in range(10)))
    loader = DataLoader(TinyStories(tmp_path), batch_size=2, num_workers=3, timeout=60)
    assert sorted(story for batch in loader for story in batch) == [f"s{i}" for i in range(10)]


@pytest.mark.native
def test_stories_are_downloaded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "TinyStories-valid.txt", "one<|endoftext|>two<|endoftext|>")
    with serve(tmp_path) as address:
        monkeypatch.setattr(TinyStories, "base_url", address)
        assert list(TinyStories(tmp_path / "data", "valid", download=True)) == ["one", "two"]
    monkeypatch.setattr(TinyStories, "base_url", "http://127.0.0.1:9/")
    assert list(TinyStories(tmp_path / "data", "valid", download=True)) == ["one", "two"]


@pytest.mark.native
def test_incomplete_downloads_are_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "TinyStories-valid.txt", "one<|endoftext|>two<|endoftext|>")
    with serve(tmp_path, Short) as address:
        monkeypatch.setattr(TinyStories, "base_url", address)
        with pytest.raises(DatasetError, match="download failed"):
            TinyStories(tmp_path / "data", "valid", download=True)
    assert not list((tmp_path / "data").rglob("*.txt"))


# ----------------------------------------------------------------------------------------------------- token blocks


@pytest.mark.parametrize("length", [1, 2, 3, 7, 100])
def test_blocks_are_the_tokens_in_a_row(length: int) -> None:
    texts = ["ab", "", "cdefgh", "i"]
    tokens = [token for text in texts for token in (*text.encode(), 0)]
    blocks = TokenBlocks(texts, lambda text: [*text.encode(), 0], length)
    lists = [block.tolist() for block in blocks]
    assert all(len(block) == length for block in lists)
    assert [token for block in lists for token in block] == tokens[: len(tokens) // length * length]
    assert [block.tolist() for block in blocks] == lists


def test_blocks_are_batched() -> None:
    blocks = TokenBlocks(["abcdef"], str.encode, 2)
    assert next(iter(DataLoader(blocks, batch_size=2))).tolist() == [[97, 98], [99, 100]]
    with pytest.raises(ArgumentError, match="length must be positive"):
        TokenBlocks([], str.encode, 0)
