"""`tallow fill-mask`: guess the words behind the mask in a text.

The mask is the model's own ([MASK] of BERT, <mask> of RoBERTa), and [MASK] stands for either. Without TEXT, standard
input is the text.
"""

from __future__ import annotations

import argparse

from tallow.autograd.modes import no_grad
from tallow.cli.device import add_device_option
from tallow.cli.language_model import number
from tallow.cli.terminal import prompt_from_stdin
from tallow.creation import tensor
from tallow.errors import ArgumentError
from tallow.hub import local_folder
from tallow.models.auto import model_class
from tallow.models.bert import BertForMaskedLM, BertForPreTraining
from tallow.models.distilbert import DistilBertForMaskedLM
from tallow.models.pretrained import PretrainedModel
from tallow.models.roberta import RobertaForMaskedLM
from tallow.nn import functional as F
from tallow.text.tokenizer import Tokenizer

MASK = "[MASK]"
MODELS = (BertForMaskedLM, DistilBertForMaskedLM, RobertaForMaskedLM)
# With another head too -> with the head for masked words alone.
SAME_HEAD: dict[type[PretrainedModel], type[PretrainedModel]] = {BertForPreTraining: BertForMaskedLM}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "text", nargs="?", metavar="TEXT", help="with one or more masks, as in: The sky is [MASK]. (default: stdin)"
    )
    parser.add_argument(
        "--model", required=True, metavar="DIR", help="the folder of a masked language model, or owner/repository"
    )
    parser.add_argument(
        "--top-k",
        type=number(int, "1 or more", lambda k: k >= 1),
        default=5,
        metavar="K",
        help="guesses for each mask (default: %(default)s)",
    )
    add_device_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Raises: TallowError, OSError"""
    folder = local_folder(arguments.model)
    kind = SAME_HEAD.get(found := model_class(folder), found)
    model = kind.from_pretrained(folder, device=arguments.device)
    tokenizer = Tokenizer.from_pretrained(folder)
    if kind not in MODELS:
        raise ArgumentError(
            f"{arguments.model} is of {type(model).__name__}, not a masked language model",
            mend="take one that is trained to guess words, such as google-bert/bert-base-uncased",
        )
    if tokenizer.mask_token_id is None:
        raise ArgumentError(
            f"the tokenizer of {arguments.model} has no mask", mend="take the one that the model was trained with"
        )
    if arguments.top_k > model.config.vocab_size:
        raise ArgumentError(f"--top-k {arguments.top_k}", mend=f"1 to {model.config.vocab_size}")
    text = prompt_from_stdin() if arguments.text is None else arguments.text
    text = text.replace(MASK, tokenizer.decode([tokenizer.mask_token_id], skip_special_tokens=False).strip())
    ids = tokenizer.encode(text)
    places = [i for i, token in enumerate(ids) if token == tokenizer.mask_token_id]
    if not places:
        raise ArgumentError("there is no mask in the text", mend=f"write {MASK} where a word is to be guessed")
    with no_grad():
        logits_TV = model(tensor([ids], device=arguments.device))[0]
        guesses = F.softmax(logits_TV[places].float(), dim=-1).topk(arguments.top_k)
    for place, (chances, tokens) in enumerate(zip(guesses.values.tolist(), guesses.indices.tolist(), strict=True)):
        if place:
            print()
        for chance, token in zip(chances, tokens, strict=True):
            print(f"{chance:7.2%}  {tokenizer.decode([token], skip_special_tokens=False).strip()}")
    return 0
