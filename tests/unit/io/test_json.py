"""JSON in files: the nesting depth is checked before parsing, in one pass over any text."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.memory_limit import limit_peak_memory

from tallow.errors import CheckpointError
from tallow.io import json_object
from tallow.io.json_object import parse_list, parse_object

texts = st.text('ab\\"[]{},:\n\N{GREEK SMALL LETTER PI}')
values = st.recursive(
    st.integers() | texts, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3)
)


def depth_of(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(map(depth_of, inner), default=0)


def cost_of(value: Any) -> int:
    """Return COST_OF_NODE for each list, object and name, and 1 for each comma."""
    inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else None
    if inner is None:
        return 0
    nodes = 1 + (len(inner) if isinstance(value, dict) else 0)
    return json_object.COST_OF_NODE * nodes + max(0, len(inner) - 1) + sum(map(cost_of, inner))


@given(st.dictionaries(texts, values, max_size=3), st.booleans(), st.sampled_from([1, 3, 1 << 16]))
def test_depth_and_cost_limit(value: dict[str, Any], ascii_only: bool, block: int) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only).encode()
    depth, cost = depth_of(value), cost_of(value)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_object, "BLOCK", block)
        assert parse_object(text, "text", depth, max_cost=cost) == value
        with pytest.raises(CheckpointError, match=f"it nests {depth} levels deep"):
            parse_object(text, "text", depth - 1)
        with pytest.raises(CheckpointError, match=f"too many values, lists and names: {cost:,}; "):
            parse_object(text, "text", depth, max_cost=cost - 1)


@given(st.lists(values, max_size=3))
def test_lists_are_read_too(value: list[Any]) -> None:
    assert parse_list(json.dumps(value).encode(), "text", depth_of(value)) == value


@pytest.mark.parametrize("before", [" ", "\n", "\r\n\t  "])
def test_whitespace_around_a_value(before: str) -> None:
    assert parse_object(f'{before}{{"a": [1]}}\n'.encode(), "text", 2) == {"a": [1]}
    assert parse_list(f"{before}[1] ".encode(), "text", 1) == [1]
    with pytest.raises(CheckpointError, match=r"is not a JSON object: it starts with '\['\n"):
        parse_object(f"{before}[1]".encode(), "text", 2)


@pytest.mark.parametrize("unit", [b'\\"', b"\\\\", b'\\"[', b"a", b'"', b'":"', b'"",', b"[", b"\\", b'"\\'])
def test_a_string_that_does_not_end_is_refused_in_one_pass(unit: bytes) -> None:
    """Trying each quote as the start of a string took hours for this much text."""
    text = b'{"' + unit * 1_000_000
    with limit_peak_memory(40 * len(text)), pytest.raises(CheckpointError, match="is not valid JSON"):
        parse_object(text, "text", 8)


def test_duplicate_names_are_refused_at_any_depth() -> None:
    with pytest.raises(CheckpointError, match="'b' appears twice"):
        parse_object(b'{"a": [{"b": 1, "c": 2, "b": 1}]}', "text", 8)
    with pytest.raises(CheckpointError, match="surrogates not allowed"):
        parse_object(b'{"\\ud800": 1, "\\udc00": 2}', "text", 8)


@pytest.mark.parametrize("half", [b"\\ud800", b"\\uDFFF", b"\\ude00\\ud83d"])
def test_lone_surrogates_are_refused_at_any_depth(half: bytes) -> None:
    with pytest.raises(CheckpointError, match="surrogates not allowed"):
        parse_object(b'{"a": ["' + half + b'"]}', "text", 8)
    assert parse_object(b'{"a": "\\ud83d\\ude00"}', "text", 8) == {"a": "\N{GRINNING FACE}"}
