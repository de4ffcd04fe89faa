#!/usr/bin/env python3
"""Write the table "Packages" of docs/browser.md: what was tried in the console in Chromium, and how long imports take.

    scripts/tab_packages.py SITE WHEELS

SITE is a site of `scripts/build_site.py --pyodide local`, WHEELS a folder of what `pip download` has fetched for the
packages. Each package runs in a page of its own, without the network.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "scripts"), str(ROOT / "wasm_examples" / "console")]

import fetch_pyodide  # noqa: E402
import prerequisites  # noqa: E402
from playwright.sync_api import Browser, sync_playwright  # noqa: E402
from tests.browser.conftest import serving  # noqa: E402
from tests.browser.consoles import Console  # noqa: E402
from tests.browser.index import Index, without_compiled_parts  # noqa: E402

PAGE = ROOT / "docs" / "browser.md"
BEGIN, END = "<!-- packages: scripts/tab_packages.py -->\n", "<!-- end -->\n"
# For each module: what is run after the import, in words and as code. `x` is an image (1, 3, 64, 64).
DECODER = """
from x_transformers import Decoder, TransformerWrapper
layers = Decoder(dim=32, depth=1, heads=2, rotary_pos_emb=True)
TransformerWrapper(num_tokens=9, max_seq_len=8, attn_layers=layers)(torch.ones(1, 4, dtype=torch.long)).shape
"""
UNET = """
down, up = ("DownBlock2D", "AttnDownBlock2D"), ("AttnUpBlock2D", "UpBlock2D")
sizes = {"sample_size": 16, "layers_per_block": 1, "block_out_channels": (8, 16), "norm_num_groups": 4}
diffusers.UNet2DModel(down_block_types=down, up_block_types=up, **sizes)(x[..., :16, :16], 5).sample.sum().backward()
"""
TRANSFORMS = """
import torchvision.transforms as T
T.Resize(32)(x).shape, torchvision.ops.nms(torch.tensor([[0.0, 0.0, 1.0, 1.0]]), torch.ones(1), 0.5)
"""
ROTARY = "rotary_embedding_torch.RotaryEmbedding(8).rotate_queries_or_keys(torch.ones(1, 2, 3, 8)).sum()"
SAMPLE = "import pyro.distributions as dist\npyro.sample('p', dist.Beta(torch.tensor(2.0), torch.tensor(2.0)))"
PROGRAMS = {
    "einops": ("`rearrange`", "einops.rearrange(x, 'b c h w -> b (h w) c').sum()"),
    "rotary_embedding_torch": ("`RotaryEmbedding`", ROTARY),
    "entmax": ("`entmax15`", "entmax.entmax15(x, dim=-1).sum()"),
    "torchdiffeq": ("`odeint`", "torchdiffeq.odeint(lambda t, y: -y, torch.ones(1), torch.linspace(0.0, 1.0, 3))"),
    "timm": ("ResNet-18, MobileNetV3", "[timm.create_model(n)(x) for n in ('resnet18', 'mobilenetv3_small_100')]"),
    "torchvision": ("transforms, `nms`", TRANSFORMS),
    "x_transformers": ("a decoder", DECODER),
    "diffusers": ("a small `UNet2DModel`, forward and backward", UNET),
    "gpytorch": ("an RBF kernel", "gpytorch.kernels.RBFKernel()(torch.rand(5, 1)).to_dense().sum()"),
    "pyro": ("sampling", SAMPLE),
}
HEAD = "import time\nimport torch\nx = torch.rand(1, 3, 64, 64)\nstart = time.perf_counter()\n"
TAIL = "import importlib.metadata\nfrom packages import TRIED\nprint('took', round(took, 1), 'version', "


def row(browser: Browser, site: str, index: Index, module: str) -> str:
    """Try a package in a new page. Return its line of the table."""
    what, code = PROGRAMS[module]
    context = browser.new_context()
    index.serve(context)
    console = Console(context.new_page()).open(site)
    output = console.run(f"{HEAD}import {module}\ntook = time.perf_counter() - start")
    version = console.run(f"{TAIL}importlib.metadata.version(TRIED[{module!r}]))")
    ran = console.run(code)
    context.close()
    if "Traceback" in output + ran:
        what = f"stops at `{(output + ran).strip().splitlines()[-1]:.80}`"
    found = re.search(r"took (\S+) version (\S+)", version)
    seconds, number = found.groups() if found else ("?", "?")
    print(module, number, seconds, what, flush=True)
    return f"| {module} | {number} | {seconds} | {what} |"


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description="Write the table of packages of docs/browser.md.")
    parser.add_argument("site", type=Path)
    parser.add_argument("wheels", type=Path)
    arguments = parser.parse_args()
    wheels = {path.name: path.read_bytes() for path in arguments.wheels.glob("*.whl")}
    for path in arguments.wheels.glob("pyyaml*.whl"):  # in Pyodide's distribution, and not in every copy of it
        wheels |= without_compiled_parts(path)
    index = Index(wheels, fetch_pyodide.place())
    with sync_playwright() as playwright, serving(arguments.site) as server:
        browser = playwright.chromium.launch(executable_path=prerequisites.chromium(), args=["--no-sandbox"])
        rows = [row(browser, server.url, index, module) for module in PROGRAMS]
        browser.close()
    text = PAGE.read_text(encoding="utf-8")
    before, after = text.partition(BEGIN)[0], text.partition(END)[2]
    table = "\n".join(["| package | version | import (s) | ran |", "| --- | --- | --- | --- |", *sorted(rows)])
    PAGE.write_text(f"{before}{BEGIN}\n{table}\n\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
