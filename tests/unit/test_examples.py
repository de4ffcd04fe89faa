"""The programs of `examples/` do what their docstrings say."""

from __future__ import annotations

import math
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support import examples
from support.examples import EXAMPLES

QUICK = {"char_gpt": ["--steps", "2"], "mnist_cnn": ["--epochs", "1"]}  # arguments that make the longer programs short


@pytest.mark.native
@pytest.mark.parametrize("name", examples.NAMES)
def test_it_runs_as_a_program(name: str, tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", EXAMPLES / f"{name}.py", *QUICK.get(name, [])]
    process = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, encoding="utf-8")
    assert process.returncode == 0, process.stderr
    assert process.stdout
    assert not list(tmp_path.iterdir()), "the program leaves files behind"


@pytest.mark.native
def test_the_notebook_is_valid_and_runs(capsys: pytest.CaptureFixture[str]) -> None:
    nbformat = pytest.importorskip("nbformat")
    path = EXAMPLES / "first_steps.ipynb"
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    session: dict[str, object] = {}
    for cell in notebook.cells:
        if cell.cell_type == "code":
            assert not cell.outputs, "save the notebook without outputs"
            exec(compile(cell.source, path.name, "exec"), session)
    printed = capsys.readouterr().out
    assert "accuracy 100%" in printed
    assert max(map(len, printed.splitlines())) > 100, "the story is missing"
    for link in re.findall(r"\]\(([^)]+)\)", path.read_text(encoding="utf-8")):
        assert (EXAMPLES / link).exists()


def test_the_index_names_every_program() -> None:
    index = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\]\((\w+)\.py\)", index)) == set(examples.NAMES)


def test_linear_regression_finds_the_line() -> None:
    losses, weight, bias = examples.load("linear_regression").main()
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < 1e-5
    np.testing.assert_allclose(weight.numpy(), [[3, 1]], atol=0.01)
    np.testing.assert_allclose(bias.numpy(), [-2], atol=0.01)


def test_computation_graph_has_the_gradients_of_the_formula() -> None:
    loss, by_w1, by_b = examples.load("computation_graph").main()
    a = 1 / (1 + math.exp(-1.1 * 2.2))
    np.testing.assert_allclose([loss, by_w1, by_b], [-math.log(a), 1.1 * (a - 1), a - 1], rtol=1e-5)
    assert (round(by_w1, 4), round(by_b, 4)) == (-0.0898, -0.0817)


def test_multilayer_perceptron_counts_its_parameters() -> None:
    count, probabilities = examples.load("multilayer_perceptron").main()
    assert count == 2213
    assert probabilities.shape == (1, 3)
    assert probabilities.sum().item() == pytest.approx(1)


def test_toy_classification_is_right_on_all_points() -> None:
    losses, in_training, in_test = examples.load("toy_classification").main()
    assert len(losses) == 6
    assert losses[-1] < losses[0]
    assert (in_training, in_test) == (1.0, 1.0)


def test_toy_keras_is_right_on_all_points() -> None:
    losses, in_training, in_test = examples.load("toy_keras").main()
    assert losses == sorted(losses, reverse=True)
    assert (in_training, in_test) == (1.0, 1.0)


def test_char_gpt_learns(capsys: pytest.CaptureFixture[str]) -> None:
    example = examples.load("char_gpt")
    losses, sample = example.main(steps=40)
    assert losses[0] == pytest.approx(math.log(len(set(example.SONNETS))), abs=0.5)
    assert np.mean(losses[-5:]) < losses[0] - 1
    assert len(sample) == 210
    assert set(sample) <= set(example.SONNETS)


def test_char_gpt_takes_a_short_text() -> None:
    losses, _ = examples.load("char_gpt").main("hello hello hello", steps=2)
    assert len(losses) == 2


@pytest.mark.cpu("what it reads stays there")
def test_mnist_cnn_reads_the_files_it_is_given(tmp_path: Path) -> None:
    example = examples.load("mnist_cnn")
    example.draw_data_set(tmp_path, train=64, test=16)
    images = (tmp_path / "MNIST" / "raw" / "train-images-idx3-ubyte").read_bytes()
    assert images[:16] == bytes([0, 0, 8, 3, 0, 0, 0, 64, 0, 0, 0, 28, 0, 0, 0, 28])
    losses, accuracy = example.main(tmp_path, epochs=1)
    assert len(losses) == 1
    assert 0 <= accuracy <= 1


@pytest.mark.cpu("what it reads stays there")
@pytest.mark.native
def test_mnist_cnn_reads_digits() -> None:
    """Native only: it takes long elsewhere."""
    losses, accuracy = examples.load("mnist_cnn").main()
    assert losses == sorted(losses, reverse=True)
    assert accuracy > 0.95
