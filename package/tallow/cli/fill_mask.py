"""`tallow fill-mask`: predict masked words.

[MASK] in TEXT stands for the model's mask token ([MASK] in BERT, <mask> in RoBERTa). Without TEXT, reads the text from
standard input.
"""

from __future__ import annotations

import argparse

from tallow.cli import via
from tallow.cli.device import add_device_option
from tallow.cli.language_model import positive_int
from tallow.cli.quant import add_quant_option
from tallow.cli.terminal import prompt_from_stdin
from tallow.cli.via import add_via_option
from tallow.core.creation import tensor
from tallow.errors import ArgumentError, escaped_line
from tallow.hub import local_folder
from tallow.models.auto import model_class
from tallow.models.encoders.bert import BertForMaskedLM, BertForPreTraining
from tallow.models.pretrained import PretrainedModel
from tallow.nn import functional as F
from tallow.tape.modes import no_grad
from tallow.text.tokenizer import Tokenizer

MASK = "[MASK]"
# Classes with additional heads -> the class with only the masked language modelling head.
SAME_HEAD: dict[type[PretrainedModel], type[PretrainedModel]] = {BertForPreTraining: BertForMaskedLM}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `tallow fill-mask`."""
    parser.add_argument(
        "text", nargs="?", metavar="TEXT", help="text with one or more masks: The sky is [MASK]. (default: stdin)"
    )
    parser.add_argument(
        "-m",
        "--model",
        required=True,
        metavar="DIR",
        help="a masked language model: its folder, or owner/repository on the Hugging Face Hub",
    )
    parser.add_argument(
        "--top-k",
        type=positive_int,
        default=5,
        metavar="K",
        help="number of predictions per mask (default: %(default)s)",
    )
    add_via_option(parser)
    add_quant_option(parser)
    add_device_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the most probable words for each mask.

    Raises:  TallowError, OSError
    """
    if arguments.via is not None:
        return _by_package(arguments)
    folder = local_folder(arguments.model)
    kind = SAME_HEAD.get(checkpoint_class := model_class(folder), checkpoint_class)
    model = kind.from_pretrained(folder, device=arguments.device, quant=arguments.quant)
    tokenizer = Tokenizer.from_pretrained(folder)
    if not kind.__name__.endswith("ForMaskedLM"):
        raise ArgumentError(
            f"{arguments.model} is a {type(model).__name__}, not a masked language model",
            hint="choose a masked language model such as google-bert/bert-base-uncased",
        )
    if tokenizer.mask_token_id is None:
        raise ArgumentError(
            f"the tokenizer of {arguments.model} has no mask token",
            hint="use the tokenizer that the model was trained with",
        )
    if arguments.top_k > model.config.vocab_size:
        raise ArgumentError(
            f"--top-k {arguments.top_k} exceeds the vocabulary", hint=f"choose 1 to {model.config.vocab_size}"
        )
    text = prompt_from_stdin() if arguments.text is None else arguments.text
    text = text.replace(MASK, tokenizer.decode([tokenizer.mask_token_id], skip_special_tokens=False).strip())
    ids = tokenizer.encode(text)
    positions = [i for i, token in enumerate(ids) if token == tokenizer.mask_token_id]
    if not positions:
        raise ArgumentError("the text contains no mask", hint=f"write {MASK} in place of a word")
    with no_grad():
        logits_TV = model(tensor([ids], device=arguments.device))[0]
        predictions = F.softmax(logits_TV[positions].float(), dim=-1).topk(arguments.top_k)
    rows = zip(predictions.values.tolist(), predictions.indices.tolist(), strict=True)
    for index, (probabilities, tokens) in enumerate(rows):
        if index:
            print()
        for probability, token in zip(probabilities, tokens, strict=True):
            word = tokenizer.decode([token], skip_special_tokens=False).strip()
            print(f"{probability:7.2%}  {escaped_line(word)}")
    return 0


def _by_package(arguments: argparse.Namespace) -> int:
    """Print the words of a model that the installed package `transformers` runs."""
    transformers, model, tokenizer = via.load(arguments, ("text", "top_k"))
    text = (prompt_from_stdin() if arguments.text is None else arguments.text).replace(
        MASK, tokenizer.mask_token or MASK
    )
    fill = transformers.pipeline("fill-mask", model=model, tokenizer=tokenizer, device=arguments.device)
    found = fill(text, top_k=arguments.top_k)
    for index, words in enumerate(found if found and isinstance(found[0], list) else [found]):
        if index:
            print()
        for word in words:
            print(f"{word['score']:7.2%}  {escaped_line(word['token_str'].strip())}")
    return 0
