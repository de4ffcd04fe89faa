"""The console: packages of PyPI, for which tallow is torch. They compute in the tab what PyTorch computes here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fetch_packages
import numpy as np
import pytest
from playwright.sync_api import Browser, Page
from tests.browser.consoles import Console
from tests.browser.hub import Hub
from tests.browser.index import Index, tab_index, wheel

RTOL = 2e-4  # of float32 through dozens of layers
# The norms of outputs and gradients, with weights of NumPy. torchvision's own library is linked to PyTorch for CUDA, so
# PyTorch here needs the ops that it describes at import.
PROGRAM = """
import json, sys
import numpy as np, torch

if "tallow" not in torch.__version__:
    library = torch.library.Library("torchvision", "DEF")
    for op in ("nms", "qnms"):
        library.define(f"{op}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
import timm

def norms(name):
    rng = np.random.RandomState(0)
    model = timm.create_model(name).eval()
    with torch.no_grad():
        for key, tensor in sorted(model.state_dict().items()):
            if tensor.is_floating_point():
                values = rng.standard_normal(tuple(tensor.shape)) / np.sqrt(max(1, tensor[:1].numel()))
                tensor.copy_(torch.from_numpy(np.abs(values) + 0.5 if "var" in key else values))
    output = model(torch.from_numpy(rng.standard_normal((2, 3, 64, 64)).astype("float32")))
    output.square().mean().backward()
    gradients = [p.grad for _, p in sorted(model.named_parameters())]
    return [float(each.detach().double().norm()) for each in (output, *gradients)]

print(json.dumps([norms("resnet18"), norms("mobilenetv3_small_100")]))
"""


@pytest.fixture(scope="module")
def packages_dir() -> Path:
    """The folder of timm for PyTorch, as in tests/compat."""
    folder = fetch_packages.place()
    if not folder.is_dir():
        pytest.skip("the packages are not installed: run scripts/test, or scripts/fetch_packages.py")
    return folder


@pytest.fixture(scope="module")
def index(wheels_dir: Path, pyodide_dir: Path) -> Index:
    """PyPI with those wheels, and some of its own."""
    found = tab_index(wheels_dir, pyodide_dir)
    found.wheels |= wheel("wick", {"wick.py": "import torch\nLENGTH = torch.ones(7).sum()\n"}, "torch>=2.4", "lead>=3")
    found.wheels |= wheel("lamp", {"lamp.py": ""}, "oil")
    source = "import torchvision\nNAME = torchvision.__name__\n"
    found.wheels |= wheel("vane", {"vane.py": source}, "torchvision", "lead")
    return found


@pytest.fixture(scope="module")
def opened(browser: Browser, site: str, index: Index) -> Iterator[Page]:
    """A page with a session, shared by the tests of the file, which must not need the network."""
    context = browser.new_context()
    index.serve(context)
    page = context.new_page()
    Console(page).open(site)
    yield page
    context.close()


@pytest.mark.parametrize("command", ["pip install wick", "%pip install -q 'wick==1.0'"])
def test_pip_installs_without_torch_and_without_what_has_no_build(console: Console, index: Index, command: str) -> None:
    cell = console.run(f"{command}\nimport wick\nwick.LENGTH")
    assert cell.endswith("tensor(7.)\n"), cell
    assert ("Installed" in cell) == ("wick 1.0" in cell)
    assert "torch" not in index.asked
    assert "lead" in index.asked


def test_micropip_installs_what_pip_does(console: Console, index: Index) -> None:
    cell = console.run("import micropip\nawait micropip.install('vane')\nimport vane\nvane.NAME")
    assert "Without lead, which Pyodide does not have." in cell
    assert cell.endswith("'torchvision'\n"), cell
    assert "torch" not in index.asked
    assert "for: 'nosuch'" in console.run("await micropip.install(['vane', 'nosuch'])")


def test_pip_names_what_it_cannot_do(console: Console) -> None:
    assert "pip install -r is not available" in console.run("pip install -r requirements.txt")
    assert "nosuch" in console.run("pip install nosuch")
    cell = console.run("text = '''\npip install nosuch\n'''\n%pip install wick\ntext")
    assert cell.endswith("'\\npip install nosuch\\n'\n")


def test_pip_stops_where_pypi_does_not_answer(console: Console, index: Index) -> None:
    index.silent.add("oil")
    assert "oil: PyPI does not answer" in console.run("pip install lamp")
    assert "ModuleNotFoundError" in console.run("import lamp")


def test_timm_computes_what_pytorch_computes(console: Console, packages_dir: Path) -> None:
    settings = {**os.environ, "PYTHONPATH": str(packages_dir)}
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM]
    with subprocess.Popen(command, env=settings, stdout=subprocess.PIPE, text=True) as pytorch:
        cell = console.run(PROGRAM)
        assert "Installed" in cell, cell
        assert "Traceback" not in cell, cell
        found, expected = (json.loads(text.strip().splitlines()[-1]) for text in (cell, pytorch.communicate()[0]))
    for row, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(row, other, rtol=RTOL, atol=1e-6)


# A ramp, whose means are the coordinates of the middles of bins; half a pixel less, as pixels are centred.
FILES_AND_OPS = """
import torch
from timm.data import ImageNetInfo
from torchvision import ops

ramp = torch.arange(16.0).expand(1, 1, 16, 16)
boxes = torch.tensor([[0.0, 0.0, 8.0, 8.0], [1.0, 1.0, 8.0, 8.0], [2.0, 2.0, 10.0, 10.0]])
kept = ops.nms(boxes, torch.tensor([0.9, 0.8, 0.7]), 0.5)
row = ops.roi_align(ramp, [boxes[2:]], (4, 4), aligned=True)[0, 0, 1]
print([kept.tolist(), row.tolist(), ImageNetInfo().index_to_description(7)])
"""


def test_data_files_of_timm_and_ops_of_torchvision(console: Console) -> None:
    cell = console.run(FILES_AND_OPS)
    assert cell.strip().splitlines()[-1] == "[[0, 2], [2.5, 4.5, 6.5, 8.5], 'cock']", cell


WEIGHTS = """
import sys, torch
library = torch.library.Library("torchvision", "DEF")
for op in ("nms", "qnms"):
    library.define(f"{op}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
import timm
from safetensors.torch import save_file
model = timm.create_model("test_resnet").eval()
save_file(model.state_dict(), sys.argv[1])
print(model(torch.ones(1, 3, 64, 64)).norm().item())
"""


def test_weights_of_timm_come_from_the_hub(console: Console, packages_dir: Path, tmp_path: Path) -> None:
    file = tmp_path / "model.safetensors"
    settings = {**os.environ, "PYTHONPATH": str(packages_dir)}
    command = [sys.executable, "-W", "ignore", "-c", WEIGHTS, str(file)]
    expected = subprocess.run(command, env=settings, capture_output=True, text=True, check=True).stdout
    hub = Hub("timm", **{"test_resnet.r160_in1k": {file.name: file.read_bytes()}})
    console.page.context.route("https://huggingface.co/**", hub)
    console.run("import timm, torch\nmodel = timm.create_model('test_resnet', pretrained=True).eval()")
    cell = console.run("model(torch.ones(1, 3, 64, 64)).norm().item()")
    assert float(cell) == pytest.approx(float(expected), rel=RTOL)
    cell = console.run(
        "from huggingface_hub import hf_hub_download\nhf_hub_download('timm/nosuch', 'model.safetensors')"
    )
    assert "RepositoryNotFoundError" in cell


def test_bert_fills_a_mask_as_in_transformers_on_pytorch(console: Console, tmp_path: Path) -> None:
    text = "The cats sat on the [MASK]."
    expected = _bert(tmp_path, text)
    console.page.get_by_test_id("choose-files").set_input_files(sorted(tmp_path.iterdir()))
    cell = console.run("from transformers import BertModel, AutoTokenizer, pipeline\nimport torch")
    assert "Traceback" not in cell, cell
    hidden = f"BertModel.from_pretrained('.')(**AutoTokenizer.from_pretrained('.')({text!r}, return_tensors='pt'))[0]"
    code = f"fill = pipeline('fill-mask', model='.')\nfound = [[e['token_str'], e['score']] for e in fill({text!r})]"
    console.run(f"{code}\nnorm = {hidden}.norm().item()")
    found: Any = json.loads(console.run("import json\nprint(json.dumps({'norm': norm, 'words': found}))"))
    assert [word for word, _ in found["words"]] == [word for word, _ in expected["words"]]
    scores = [[row[1] for row in each["words"]] + [each["norm"]] for each in (found, expected)]
    np.testing.assert_allclose(scores[0], scores[1], rtol=RTOL)


def _bert(folder: Path, text: str) -> dict[str, Any]:
    """Write a small BERT to a folder. Return what transformers computes with it on PyTorch."""
    transformers, torch = pytest.importorskip("transformers"), pytest.importorskip("torch")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "sat", "##s", "on", "mat", "."]
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    config = transformers.BertConfig(vocab_size=len(words), max_position_embeddings=32, **sizes)
    torch.manual_seed(0)
    transformers.BertForMaskedLM(config).eval().save_pretrained(folder)
    vocab = folder / "vocab.txt"
    vocab.write_text("\n".join(words))
    tokenizer = transformers.BertTokenizerFast(str(vocab))
    tokenizer.save_pretrained(folder)
    fill = transformers.pipeline("fill-mask", model=str(folder))
    with torch.no_grad():
        hidden = transformers.BertModel.from_pretrained(folder).eval()(**tokenizer(text, return_tensors="pt"))[0]
    return {"norm": hidden.norm().item(), "words": [[row["token_str"], row["score"]] for row in fill(text)]}
