"""torch.nn.attention.flex_attention, and torch.quasirandom, by what they must compute."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import pytest

from tallow.compat import install_torch


@pytest.fixture
def torch() -> Iterator[Any]:
    with install_torch(replace=True):
        yield importlib.import_module("torch")


def test_masks_and_scores_are_those_of_plain_attention(torch: Any) -> None:
    flex = importlib.import_module("torch.nn.attention.flex_attention")
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 4, n, 8, requires_grad=True) for n in (24, 28, 28))
    bias = torch.randn(4, 60)

    def causal(b: Any, h: Any, q: Any, kv: Any) -> Any:
        return (q >= kv) & (kv > 0)  # the first query sees nothing

    def score(s: Any, b: Any, h: Any, q: Any, kv: Any) -> Any:
        return s + bias[h, q - kv + 30]

    mask = flex.create_block_mask(causal, None, None, 24, 28, BLOCK_SIZE=8)
    assert mask.to_dense().tolist() == [[[[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0]]]]
    assert mask.full_kv_num_blocks.tolist() == [[[0, 0, 1]]]
    output, lse = flex.flex_attention(q, k, v, score, mask, return_lse=True)
    places = torch.arange(24)[:, None], torch.arange(28)
    scores = q @ k.transpose(-2, -1) / 8**0.5 + bias[:, places[0] - places[1] + 30]
    scores = scores.masked_fill(~causal(0, 0, *places), -torch.inf)
    torch.testing.assert_close(output[..., 1:, :], scores[..., 1:, :].softmax(-1) @ v, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(lse, scores.logsumexp(-1), rtol=1e-5, atol=1e-6)
    assert output[..., 0, :].abs().sum().item() == 0
    output.sum().backward()
    assert torch.isfinite(q.grad).all()


DRAWN = """(0, 0)
██
████
██████
██████
"""


def test_a_mask_by_columns_and_drawn(torch: Any) -> None:
    flex = importlib.import_module("torch.nn.attention.flex_attention")
    mask = flex.create_block_mask(lambda b, h, q, kv: q >= kv, None, None, 16, 12, BLOCK_SIZE=(4, 2))
    assert mask.q_num_blocks.tolist() == [[[1, 1, 1, 1, 1, 1]]]  # what PyTorch has
    assert mask.q_indices[0, 0, :3].tolist() == [[0, 1, 2, 3], [0, 1, 2, 3], [1, 0, 2, 3]]
    assert mask.full_q_num_blocks.tolist() == [[[3, 3, 2, 2, 1, 1]]]
    assert [line.rstrip() for line in mask.to_string((4, 4)).split("\n")] == DRAWN.split("\n")
    half = flex.create_block_mask(lambda b, h, q, kv: q >= kv, 2, 1, 256, 256, BLOCK_SIZE=4)
    assert half.to_string().count("░░") == 32
    assert half.to_string().index("(1, 0)") == half.to_string().index("\n\n") + 2
    assert mask[:, :, 1].shape == (1, 1, 16, 12)
    assert "sparsity=25.00%" in repr(mask)
    assert "full_q_indices=torch.Size([1, 1, 6, 4])" in repr(mask)


def test_sobol_points(torch: Any) -> None:
    pytest.importorskip("scipy")
    engine = importlib.import_module("torch.quasirandom").SobolEngine
    sequence = engine(3)
    points = sequence.draw(4)
    assert points.tolist() == [[0.0, 0.0, 0.0], [0.5, 0.5, 0.5], [0.75, 0.25, 0.25], [0.25, 0.75, 0.75]]
    fifth = sequence.draw()
    assert sequence.reset().fast_forward(4).draw().tolist() == fifth.tolist()
    scrambled = engine(3, scramble=True, seed=1).draw_base2(6)
    for column in scrambled.unbind(1):  # each sixty-fourth of the interval has one point
        assert sorted((column * 64).int().tolist()) == list(range(64))
