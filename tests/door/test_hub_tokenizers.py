"""Tokenizers of public repositories, with small vocabularies: transformers' AutoTokenizer gives the same."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
import transformers
from support import hub_tokenizers
from support.hub_files import HUB
from support.hub_tokenizers import HubFolder

from tallow.errors import TokenizerError
from tallow.text.tokenizer import Tokenizer

# Of other kinds in transformers: these do not read the folder's `tokenizer.json`.
OTHER_KINDS = ("M2M100Tokenizer", "MarianTokenizer", "PhobertTokenizer", "Wav2Vec2CTCTokenizer")
# Folders that transformers cannot load -> whether tallow loads them.
BEYOND_TRANSFORMERS = {
    "nuxwork/llama-7b-hf:": True,  # LLaMATokenizer, an old spelling
    "jayateertha6491/hkunlp_instruct:": True,  # its list of <extra_id_0> and so on is shortened
    "MagistrTheOne/Oracle19B:checkpoints/oracle850b/tokenizer": False,  # a post-processor of no known form
}
# Folders with other results than transformers'.
DIFFERENT = {
    "EunB2/KL-RoBERTa:": "tokenizer.json has WordPiece; transformers takes its vocabulary as a BPE without merges",
}
TEXTS = [
    "The cat is not on the token 12.",
    "hello, it's 's n't   two  spaces",
    "UN.café 你好 <mask> x",
    "a</s>b<|endoftext|> c [SEP]d [MASK]e",
    "",
    "The ing er is not cat on token un The 12 The ing er is not",
]
PAIRS = [
    ("The cat", "is not on the token"),
    ("a b c d e f g h i j", "h g"),
    ("h g", "a b c d e f g h i j"),
    ("the ing er the is is is", "the the the er er is is"),
]
NAMES = ("bos_token_id", "eos_token_id", "pad_token_id", "mask_token_id")
UNLIMITED = 10**6


@cache
def hub_folders() -> list[HubFolder]:
    return list(hub_tokenizers.folders())


@pytest.mark.skipif(not HUB.exists(), reason=f"{HUB} does not exist")
def test_most_folders_are_compared() -> None:
    compared = [folder for folder in hub_folders() if is_compared(folder)]
    assert len(compared) > 0.9 * len(hub_folders()) > 100
    assert len(DIFFERENT) < 0.01 * len(compared)


def is_compared(folder: HubFolder) -> bool:
    return hub_tokenizers.class_of(folder) not in OTHER_KINDS and folder.name not in BEYOND_TRANSFORMERS


@pytest.mark.filterwarnings("ignore:`rope_scaling`:FutureWarning")  # transformers, of old configs
@pytest.mark.parametrize("folder", hub_folders(), ids=lambda folder: folder.name)
def test_folder(folder: HubFolder, tmp_path: Path) -> None:
    hub_tokenizers.write(folder, tmp_path, form(folder))
    if BEYOND_TRANSFORMERS.get(folder.name) is False:
        with pytest.raises(TokenizerError):
            Tokenizer.from_pretrained(tmp_path)
        return
    ours = Tokenizer.from_pretrained(tmp_path)
    assert ours.encode("cat")
    if folder.name in DIFFERENT:
        pytest.xfail(DIFFERENT[folder.name])
    if is_compared(folder):
        theirs = transformers.AutoTokenizer.from_pretrained(tmp_path, trust_remote_code=False)
        compare(ours, theirs)


@cache
def known_forms() -> dict[str, list[dict[str, Any]]]:
    return hub_tokenizers.forms(hub_folders())


def form(folder: HubFolder) -> dict[str, Any]:
    return hub_tokenizers.form_for(folder, known_forms())


def compare(ours: Tokenizer, theirs: Any) -> None:
    assert [getattr(ours, name) for name in NAMES] == [getattr(theirs, name) for name in NAMES]
    assert ours.special_tokens() == theirs.special_tokens_map
    limit = theirs.model_max_length
    assert ours.model_max_length == (None if limit > 1e12 else limit)
    for text in TEXTS:
        for special in (True, False):
            ids = theirs.encode(text, add_special_tokens=special)
            assert ours.encode(text, add_special_tokens=special) == ids, text
            for skip in (True, False):
                assert ours.decode(ids, skip_special_tokens=skip) == theirs.decode(ids, skip_special_tokens=skip), text
    limits = [limit for limit in (4, 7, 9) if limit >= theirs.num_special_tokens_to_add(pair=True)]
    for inputs in (*TEXTS, *PAIRS):
        for limit in (*limits, UNLIMITED):
            (row,) = ours.encode_each([inputs], max_length=limit)
            expected = theirs([inputs], truncation=True, max_length=limit).encodings[0]
            assert (row.ids, row.segments) == (expected.ids, expected.type_ids), (inputs, limit)
    if theirs.pad_token is not None:
        expected = theirs(TEXTS, padding=True, truncation=ours.model_max_length is not None)
        batch = ours.encode_batch(TEXTS)
        assert batch.input_ids.tolist() == expected["input_ids"]
        assert batch.attention_mask.tolist() == expected["attention_mask"]
