#!/usr/bin/env python3
"""Write docs/models.md: the architectures that tallow has, from the tables that load them.

python scripts/build_models_page.py
python scripts/build_models_page.py --check   # write nothing; fail if the file would change
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from pathlib import Path
from textwrap import fill
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "docs" / "models.md"
sys.path[:0] = [str(ROOT / "package"), str(ROOT)]

from tests.compat.by_transformers import KINDS  # noqa: E402

from tallow import models  # noqa: E402 - the path above comes first
from tallow.models.architectures import ARCHITECTURES, MODEL_TYPES, PREFIXES  # noqa: E402
from tallow.models.causal_lm import CausalLM  # noqa: E402
from tallow.models.decoders.llama import Llama  # noqa: E402
from tallow.models.gguf.decoder_names import DECODER_NAMES  # noqa: E402
from tallow.models.gguf.names import NAMES  # noqa: E402
from tallow.models.gguf.state_names import STATE_NAMES  # noqa: E402
from tallow.models.seq2seq.model import Seq2SeqLM  # noqa: E402
from tallow.models.speech.speech_encoder import SpeechPretrainedModel  # noqa: E402

HEAD = """# Models

`AutoModel` loads these architectures from Hugging Face folders, and those with an entry in the column "GGUF" from GGUF
files of that `general.architecture`, in every format. `scripts/build_models_page.py` writes this page from the tables
that load them.

All run in a tab (Pyodide), on the device `cuda`, and with LoRA; `quantize` makes blocks of 4 or 8 bits of their
matrices. "fused" means that a token is decoded by one kernel call for each layer; [Speed](language-models.md#speed) has
the conditions, and `model.explain()` tells for a model. `tallow serve` has language models for texts, encoders for
embeddings and labels, and Whisper.

What has no file here may run [by transformers](#by-transformers). `tallow info OWNER/NAME` tells before a
download whether a repository loads, its size and its memory.

"""
BY_TRANSFORMERS = """

## By transformers

The installed package `transformers` runs architectures that are not in this table, with tallow in the place of PyTorch,
(tried natively; not in a tab):

- `AutoModel.from_pretrained(name, via="transformers")` returns its model,
- `tl.pipeline(task, name, via="transformers")` its pipeline,
- `tallow generate` and `tallow fill-mask` take `--via transformers`.

They are as fast as their Python, without fused blocks and quantised matrices, and `import torch` gives tallow from then
on. A test compares small models of these architectures with PyTorch, by `model_type`:

"""
WRITES, FROM_INPUT = "writes", "writes from an input"
TASKS = {
    "ForSequenceClassification": "labels texts",
    "ForTokenClassification": "labels tokens",
    "ForQuestionAnswering": "answers",
    "ForMaskedLM": "fills masks",
    "ForMultipleChoice": "choices",
    "ForImageClassification": "labels images",
    "ForSemanticSegmentation": "labels pixels",
    "ForObjectDetection": "finds objects",
    "ForDepthEstimation": "depths of pixels",
    "ForAudioClassification": "labels sounds",
    "ForAudioFrameClassification": "labels frames of sounds",
    "ForCTC": "writes what was said",
    "ForXVector": "vectors of speakers",
    "ForConditionalGeneration": FROM_INPUT,
    "MTModel": "translates",
    "WithProjection": "projected embeddings",
    "ForCausalLM": WRITES,
    "LMHeadModel": WRITES,
    "Model": "embeddings",
}
PARTS = ("For", "Model", "LMHead", "MTModel", "Text", "Vision", "Encoder", "With")  # that follow a family's name


def page() -> str:
    """Return the page."""
    formats = defaultdict(set)
    for name, names in {**NAMES, **DECODER_NAMES, **STATE_NAMES}.items():
        formats[name.replace("TwoNorms", "")].add(names.architecture)
    lines = ["| `model_type` | tasks | GGUF | decoding | `tallow serve` |", "| --- | --- | --- | --- | --- |"]
    for kind in sorted(MODEL_TYPES):
        classes = [name for name in ARCHITECTURES if _family(name, PREFIXES[kind])]
        named = ((name, text) for end, text in TASKS.items() for name in classes if _ends(name, end))
        tasks = ", ".join(dict.fromkeys(_task(name, text) for name, text in named))
        ours = {ARCHITECTURES[name] for name in classes}
        files = ", ".join(f"`{each}`" for each in sorted(set().union(*(formats[name] for name in ours))))
        main: Any = getattr(models, ARCHITECTURES[MODEL_TYPES[kind]])
        lines.append(f"| `{kind}` | {tasks} | {files} | {_decoding(main)} | {_served(main, tasks)} |")
    tried = fill(", ".join(f"`{kind}`" for kind in sorted(KINDS)), 120, break_on_hyphens=False)
    return HEAD + "\n".join(lines) + BY_TRANSFORMERS + tried + "\n"


def _family(name: str, prefix: str) -> bool:
    """Return whether a class is of a family: what follows the prefix is the name of a head."""
    rest = name.removeprefix(prefix)
    if not name.startswith(prefix) or not rest.startswith(PARTS):
        return False
    return any(rest.endswith(end) for end in TASKS)


def _ends(name: str, end: str) -> bool:
    longer = [other for other in TASKS if other != end and other.endswith(end)]
    return name.endswith(end) and not name.endswith(tuple(longer))


def _task(name: str, text: str) -> str:
    """Return the task of a class, from that of its name: whether a model writes from an input is its own property."""
    kind = getattr(models, ARCHITECTURES[name])
    if kind is models.VitsModel:
        return "speaks"
    if issubclass(kind, SpeechPretrainedModel):
        return text.replace("texts", "sounds")
    if issubclass(kind, CausalLM):  # of texts, where the name is that of a model of images
        return WRITES
    return FROM_INPUT if issubclass(kind, Seq2SeqLM) and text == WRITES else text


def _decoding(kind: Any) -> str:
    """Return how a language model decodes a token, by the classes of its layers."""
    if not issubclass(kind, CausalLM):
        return ""
    if not issubclass(kind, Llama) or kind.fused_pattern is None:
        return "modules"
    layer = kind.model_class.layer_class
    parts = (kind.model_class, layer, getattr(layer, "attention_class", None), getattr(layer, "mlp_class", None))
    known = all(isinstance(part, type) and kind.fused_pattern.kind_of(part) for part in parts)
    return "fused" if known else "modules"


def _served(kind: Any, tasks: str) -> str:
    if issubclass(kind, CausalLM):
        return "texts"
    if kind.__name__ == "Whisper":
        return "speech"
    return "embeddings, labels" if "fills masks" in tasks else ""


def main() -> int:
    """Write the page, or compare it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="fail if the file would change")
    text = page()
    if parser.parse_args().check:
        return int(FILE.read_text(encoding="utf-8") != text)
    FILE.write_text(text, encoding="utf-8")
    print(f"wrote {FILE.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
