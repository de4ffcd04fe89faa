#!/usr/bin/env python3
"""Write wasm_examples/onnx/models/digits.onnx, the model that the page opens with: it reads a handwritten digit.

    python scripts/make_onnx_digits.py [OUT]

A network of 5,258 weights is trained for a minute on digits that wasm_examples/train/digits.py draws, and exported by
`tl.onnx.export`. No packaged model reads pictures, and the smallest of them would take 40 times the bytes.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import prerequisites  # noqa: F401 - makes the checkout importable

import tallow as tl
from tallow import nn

PAGES = Path(__file__).resolve().parents[1] / "wasm_examples"
sys.path.append(str(PAGES / "train"))
import digits  # noqa: E402 - a module of the page

STEPS, BATCH = 1500, 70


def main() -> None:
    """Train, export, and print the accuracy on new drawings."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", nargs="?", type=Path, default=PAGES / "onnx" / "models" / "digits.onnx")
    out = parser.parse_args().out
    tl.manual_seed(0)
    network = nn.Sequential(
        *(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(8, 16, 3), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(400, 10)),
    )
    images, labels = digits.drawn_digits(400)
    optimizer = tl.optim.Adam(network.parameters(), lr=2e-3)
    for _ in range(STEPS):
        chosen = tl.randint(len(images), (BATCH,))
        optimizer.zero_grad()
        nn.functional.cross_entropy(network(images[chosen]), labels[chosen]).backward()
        optimizer.step()
    network.eval()
    fresh, wanted = digits.drawn_digits(50)
    print(f"accuracy on new drawings: {(network(fresh).argmax(1) == wanted).float().mean().item():.3f}")
    out.parent.mkdir(parents=True, exist_ok=True)
    names = {"input_names": ["image"], "output_names": ["digit"], "dynamic_axes": {"image": {0: "batch"}}}
    tl.onnx.export(network, (images[:1],), out, external_data=False, dynamo=False, **names)
    print(f"{out}: {out.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
