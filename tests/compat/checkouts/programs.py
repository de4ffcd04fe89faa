"""The programs of public repositories that are run, with small made-up data."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from checkouts import lessons


class Program(NamedTuple):
    """A program: where it is, its arguments, its data, and what is compared."""

    folder: str  # below the checkouts; it is copied, and the current one
    path: str  # below the folder
    arguments: str = ""
    data: Callable[[Path], None] | None = None  # writes into a copy of the folder
    lines: int = 0  # it ends after so many lines; 0: by itself
    before: str = ""  # a program that runs first, by PyTorch, with the same draws
    picture: str = ""  # a file to compare
    # False: only its end counts, as processes race, it prints generated code or initial weights, or PyTorch draws
    # dropout in C++.
    compared: bool = True


def digits(folder: Path) -> None:
    """Write MNIST's four files with 64 and 32 pictures."""
    raw = folder.parent / "data" / "MNIST" / "raw"
    raw.mkdir(parents=True)
    rng = np.random.RandomState(0)
    for part, count in (("train", 64), ("t10k", 32)):
        for kind, shape in (("images-idx3", (count, 28, 28)), ("labels-idx1", (count,))):
            values = rng.randint(0, 256 if len(shape) > 1 else 10, shape).astype("uint8")
            values.flat[:10] = values.flat[:10] if len(shape) > 1 else np.arange(10)
            head = np.array([0x800 + len(shape), *shape], ">u4").tobytes()
            (raw / f"{part}-{kind}-ubyte").write_bytes(head + values.tobytes())


def own_digits(folder: Path) -> None:
    """Write MNIST's files below the program's own folder."""
    (folder / "inner").mkdir()
    digits(folder / "inner")


def words(folder: Path) -> None:
    """Write three texts of twenty words."""
    rng = np.random.RandomState(0)
    (folder / "data" / "wikitext-2").mkdir(parents=True, exist_ok=True)
    for part, count in (("train", 60), ("valid", 20), ("test", 20)):
        rows = [" ".join(f"word{i}" for i in rng.randint(0, 20, 30)) for _ in range(count)]
        (folder / "data" / "wikitext-2" / f"{part}.txt").write_text("\n".join(rows) + "\n", encoding="utf-8")


def waves(folder: Path) -> None:
    """Write ten sine waves of forty steps, as generate_sine_wave.py does."""
    import torch

    values = np.sin((np.arange(40) + np.random.RandomState(2).randint(-80, 80, (10, 1))) / 20.0)
    torch.save(values, folder / "traindata.pt")


def cora(folder: Path) -> None:
    """Write a graph of 1,700 nodes in Cora's format, as an archive."""
    rng = np.random.RandomState(0)
    features = rng.rand(1700, 12) < 0.3
    rows = [f"{i} {' '.join(map(str, row.astype(int)))} kind{i % 3}" for i, row in enumerate(features)]
    edges = [f"{a} {b}" for a, b in {(int(a), int(b)) for a, b in rng.randint(0, 1700, (3000, 2))}]
    with tarfile.open(folder / "cora.tgz", "w:gz") as archive:
        for name, lines in (("content", rows), ("cites", edges)):
            text = "\n".join(lines).encode()
            member = tarfile.TarInfo(f"cora/cora.{name}")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text))
    with tarfile.open(folder / "cora.tgz") as archive:
        archive.extractall(folder, filter="data")


def pictures(*folders: str, size: int = 300, count: int = 4) -> Callable[[Path], None]:
    """Return a function that writes pictures into folders."""

    def write(folder: Path) -> None:
        from PIL import Image

        rng = np.random.RandomState(0)
        for name in folders:
            (folder / name).mkdir(parents=True, exist_ok=True)
            for i in range(count):
                Image.fromarray(rng.randint(0, 256, (size, size, 3)).astype("uint8")).save(folder / name / f"{i}.png")

    return write


def style(folder: Path) -> None:
    """Write a picture, and made-up weights of the network."""
    import sys

    import torch

    pictures("images", size=40, count=1)(folder)
    sys.path.insert(0, str(folder / "neural_style"))
    from transformer_net import TransformerNet

    rng, model = np.random.RandomState(0), TransformerNet()
    for p in model.parameters():
        p.data = torch.from_numpy((rng.standard_normal(tuple(p.shape)) * 0.1).astype("float32"))
    torch.save(model.state_dict(), folder / "made_up.pth")


MNIST = "--epochs 1 --batch-size 16 --test-batch-size 32 --log-interval 1"
WORDS = "--epochs 1 --emsize 16 --nhid 16 --batch_size 4 --bptt 10 --log-interval 20 --dropout 0 --nhead 2 --lr 1"
FAKE = "--dataset fake --batchSize 4 --ngf 8 --ndf 8 --workers 0 --niter 1 --manualSeed 1"
UPSCALE = "--upscale_factor 4 --batchSize 2 --testBatchSize 2 --nEpochs 1 --threads 0"
GRAPH = "--epochs 3 --val-every 1"
STYLE = "eval --content-image images/0.png --model made_up.pth --output-image made.png"
ADDER = "--model.model_type=gpt-nano --trainer.max_iters=12 --trainer.batch_size=8 --trainer.num_workers=0"
KINDS = ("RNN_TANH", "RNN_RELU", "LSTM", "GRU")
FX = ("invert", "module_tracer", "primitive_library", "profiling_tracer", "replace_op", "subgraph_rewriter_basic_use")
HIGH = [f"dataset/BSDS300/images/{part}" for part in ("train", "test")]
BOOK = "LLMs-from-scratch"
SMALL = "--emb_dim 32 --n_heads 4 --n_layers 2 --max_new_tokens 12"
VARIANTS = (  # of attention and of the layers behind it: chapter 4
    ("04_gqa", "gpt_with_kv_mha.py", ""),
    ("04_gqa", "gpt_with_kv_gqa.py", " --n_kv_groups 2"),
    ("05_mla", "gpt_with_kv_mla.py", " --latent_dim 8"),
    ("06_swa", "gpt_with_kv_swa.py", " --sliding_window_size 8 --sliding_window_stride 2"),
    ("07_moe", "gpt_with_kv_ffn.py", " --hidden_dim 64"),
    ("07_moe", "gpt_with_kv_moe.py", " --hidden_dim 64 --num_experts 4 --num_experts_per_tok 2"),
)
NOTEBOOKS = (("ch02", "ch02"), ("ch02", "dataloader"), ("ch03", "ch03"), ("ch03", "multihead-attention"))
KEPT = [f"pictures/{part}/{kind}" for part in ("train", "val") for kind in "ab"]
PROGRAMS = [
    Program("examples/mnist", "main.py", f"{MNIST} --no-accel --save-model", digits),
    Program("examples/mnist_rnn", "main.py", f"{MNIST} --save-model", digits),
    Program("examples/mnist_hogwild", "main.py", f"{MNIST} --num-processes 2", digits, compared=False),
    Program("examples/mnist_forward_forward", "main.py", "--epochs 3 --train_size 40 --test_size 20", own_digits),
    Program("examples/vae", "main.py", "--epochs 1 --batch-size 16 --log-interval 1 --no-accel", digits),
    Program("examples/siamese_network", "main.py", f"{MNIST} --no-accel --dry-run", digits),
    Program("examples/dcgan", "main.py", FAKE, lines=40),
    Program("examples/super_resolution", "main.py", UPSCALE, pictures(*HIGH)),
    Program("examples/time_sequence_prediction", "train.py", "--steps 2", waves),
    Program("examples/regression", "main.py"),
    Program("examples/gcn", "main.py", GRAPH, cora),
    Program("examples/gat", "main.py", f"{GRAPH} --hidden-dim 8 --num-heads 2", cora),
    Program(
        "examples/imagenet", "main.py", "--epochs 1 -b 2 -j 0 --no-accel pictures", pictures(*KEPT, size=64, count=2)
    ),
    Program("examples/reinforcement_learning", "reinforce.py", "--log-interval 1", lines=12),
    Program("examples/reinforcement_learning", "actor_critic.py", "--log-interval 1", lines=12),
    *(Program("examples/word_language_model", "main.py", f"--model {kind} {WORDS}", words) for kind in KINDS),
    Program("examples/word_language_model", "main.py", f"--model Transformer {WORDS}", words, compared=False),
    Program(
        "examples/word_language_model",
        "generate.py",
        "--words 12",
        words,
        before=f"main.py --model Transformer {WORDS}",
    ),
    Program("examples/fast_neural_style", "neural_style/neural_style.py", STYLE, style, picture="made.png"),
    *(Program("examples/fx", f"{name}.py", compared=False) for name in FX),
    Program("minGPT", "projects/adder/adder.py", ADDER, lines=60),
    *(
        Program(
            f"{BOOK}/{chapter}/01_main-chapter-code",
            "small.py",
            name,
            lessons.cells(f"{name}.ipynb"),
            compared=name != "ch02",
        )
        for chapter, name in NOTEBOOKS
    ),
    Program(f"{BOOK}/ch04/01_main-chapter-code", "gpt.py", "", lessons.lesson()),
    *(Program(f"{BOOK}/ch04/{at}", path, SMALL + more, lessons.lesson()) for at, path, more in VARIANTS),
    Program(f"{BOOK}/ch05/01_main-chapter-code", "small.py", "gpt_train", lessons.lesson(lessons.TRAIN)),
    Program(f"{BOOK}/ch05/01_main-chapter-code", "small.py", "gpt_generate", lessons.lesson(lessons.GENERATE)),
    Program(
        f"{BOOK}/ch06/01_main-chapter-code",
        "gpt_class_finetune.py",
        "--test_mode",
        lessons.lesson(more=lessons.messages),
    ),
    Program(f"{BOOK}/pkg", "small.py", "variants", lessons.lesson(lessons.VARIANTS)),
]
