"""llama2.c checkpoints: both layouts of export.py are read, and other files are refused."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallow.errors import CheckpointError
from tallow.io import llama2c

# dim, hidden_dim, n_layers, n_heads, n_kv_heads, vocab_size, seq_len
SIZES = (8, 12, 2, 4, 2, 11, 6)
V0_ORDER = "token_embedding_table rms_att_weight wq wk wv wo rms_ffn_weight w1 w2 w3 rms_final_weight"
V1_ORDER = "rms_att_weight rms_ffn_weight rms_final_weight token_embedding_table wq wk wv wo w1 w2 w3"
LAYER_SHAPES = {"wq": (8, 8), "wk": (4, 8), "wv": (4, 8), "wo": (8, 8), "w1": (12, 8), "w2": (8, 12), "w3": (12, 8)}


def random_weights(seed: int = 0) -> dict[str, np.ndarray[Any, Any]]:
    shapes = {name: (2, *shape) for name, shape in LAYER_SHAPES.items()}
    shapes |= {"rms_att_weight": (2, 8), "rms_ffn_weight": (2, 8), "rms_final_weight": (8,)}
    shapes |= {"token_embedding_table": (11, 8), "wcls": (11, 8)}
    rng = np.random.default_rng(seed)
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def version_0(weights: dict[str, np.ndarray[Any, Any]], *, shared: bool) -> bytes:
    """Write the layout of `legacy_export`."""
    *sizes, vocab_size, seq_len = SIZES
    header = struct.pack("<7i", *sizes, vocab_size if shared else -vocab_size, seq_len)
    body = b"".join(weights[name].tobytes() for name in V0_ORDER.split()) + np.full(6 * 2, 99, np.float32).tobytes()
    return header + body + (b"" if shared else weights["wcls"].tobytes())


def version_1(weights: dict[str, np.ndarray[Any, Any]], *, shared: bool, version: int = 1) -> bytes:
    """Write the layout of `version1_export`."""
    header = struct.pack("<Ii7iB", 0x616B3432, version, *SIZES, shared).ljust(256, b"\0")
    body = b"".join(weights[name].tobytes() for name in V1_ORDER.split())
    return header + body + (b"" if shared else weights["wcls"].tobytes())


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("write", [version_0, version_1])
def test_both_versions_read_as_written(write: Any, shared: bool) -> None:
    weights = random_weights()
    checkpoint = llama2c.load(write(weights, shared=shared))
    header = checkpoint.header
    assert tuple(getattr(header, size) for size in llama2c.SIZES) == SIZES
    assert header.shared_classifier is shared
    expected = {name: array for name, array in weights.items() if name != "wcls" or not shared}
    assert checkpoint.arrays.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_array_equal(checkpoint.arrays[name], array, strict=True)


def test_real_checkpoint(data_dir: Path) -> None:
    """Sizes are those of its README; a trained RMSNorm has positive weights of order one."""
    checkpoint = llama2c.load(data_dir / "stories260K.bin")
    assert tuple(getattr(checkpoint.header, size) for size in llama2c.SIZES) == (64, 172, 5, 8, 4, 512, 512)
    assert checkpoint.header.shared_classifier
    norms = checkpoint.arrays["rms_final_weight"]
    assert 0.1 < norms.min() <= norms.max() < 20


def test_arrays_are_views_of_the_source() -> None:
    buffer = bytearray(version_1(random_weights(), shared=True))
    checkpoint = llama2c.load(buffer)
    buffer[256:260] = struct.pack("<f", 1234.5)
    assert checkpoint.arrays["rms_att_weight"][0, 0] == 1234.5


def test_mapped_arrays_can_be_written_and_the_file_stays(tmp_path: Path) -> None:
    file = version_0(random_weights(), shared=True)
    path = tmp_path / "model.bin"
    path.write_bytes(file)
    llama2c.load(path).arrays["wq"][...] = 0
    assert path.read_bytes() == file


def test_header_determines_the_file_size() -> None:
    for file in (version_0(random_weights(), shared=False), version_1(random_weights(), shared=True)):
        assert llama2c.read_header(file[:256]).file_bytes == len(file)
    llama_7b = struct.pack("<7i", 4096, 11008, 32, 32, 32, -32000, 2048)
    weights, rotary_tables = 6_738_415_616, 2048 * 128
    assert llama2c.read_header(llama_7b).file_bytes == 28 + 4 * (weights + rotary_tables)


def with_size(name: str, value: int) -> bytes:
    sizes = list(SIZES)
    sizes[llama2c.SIZES.index(name)] = value
    return struct.pack("<7i", *sizes) + version_0(random_weights(), shared=True)[28:]


@pytest.mark.parametrize(
    ("file", "message"),
    [
        (b"", "0 bytes are too few"),
        (bytes(27), "27 bytes are too few"),
        (bytes(28), "every size must be positive"),
        (with_size("dim", -8), "every size must be positive"),
        (with_size("seq_len", 0), "every size must be positive"),
        (with_size("n_heads", 3), "n_heads must divide dim"),
        (with_size("n_heads", 8), "must be even"),
        (with_size("n_kv_heads", 3), "n_kv_heads must divide n_heads"),
        (with_size("n_layers", 2**31 - 1), "truncated"),
        (struct.pack("<7i", *[2**31 - 2] * 2, 2**31 - 1, 1, 1, 2**31 - 1, 2**31 - 1), "truncated: 28 bytes"),
        (version_0(random_weights(), shared=True)[:-1], "truncated"),
        (version_0(random_weights(), shared=True) + b"\0", "oversized"),
        (version_1(random_weights(), shared=True)[:200], "truncated inside its 256-byte header"),
        (version_1(random_weights(), shared=True)[:-4], "truncated"),
        (version_1(random_weights(), shared=True) + bytes(4), "oversized"),
        (version_1(random_weights(), shared=True, version=2), "version 2, with int8 weights"),
        (version_1(random_weights(), shared=True, version=3), "version 3; tallow reads versions 0 and 1"),
        (version_1(random_weights(), shared=2), "shared classifier is 2"),  # type: ignore[arg-type]
    ],
)
def test_malformed_files_are_refused(file: bytes, message: str) -> None:
    with pytest.raises(CheckpointError) as caught:
        llama2c.load(file)
    assert message in str(caught.value)


sizes = st.sampled_from([-1, 0, 1, 2, 4, 7, 2**31 - 1, -(2**31)]) | st.integers(-(2**31), 2**31 - 1)
plausible = st.tuples(*[sizes] * 7).map(lambda header: struct.pack("<7i", *header))
versioned = st.tuples(st.integers(0, 3), *[sizes] * 7, st.integers(0, 3)).map(
    lambda header: struct.pack("<Ii7iB", 0x616B3432, *header).ljust(256, b"\0")
)


@given(st.binary(max_size=300) | st.builds(bytes.__add__, plausible | versioned, st.binary(max_size=64)))
def test_any_bytes_load_or_raise_a_checkpoint_error(file: bytes) -> None:
    try:
        checkpoint = llama2c.load(file)
    except CheckpointError:
        return
    assert sum(array.nbytes for array in checkpoint.arrays.values()) <= len(file)
