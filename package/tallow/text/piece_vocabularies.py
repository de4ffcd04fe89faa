"""The vocabularies that tokenizer classes make of the pieces of a SentencePiece model: most leave them as they are.

fairseq's classes have special tokens of their own in place of the first pieces, and others at the end.

Source:  transformers 5.23, `convert_slow_tokenizer.py`
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tallow.text.sentencepiece import SentencePieceModel

Scored = list[list[Any]]  # tokens with their scores, as in the `vocab` of a `tokenizer.json`
EXTRA_IDS = 100  # T5's sentinels, if the config does not say
MAX_EXTRA_IDS = 10_000
_LANGUAGES = """
ar_AR cs_CZ de_DE en_XX es_XX et_EE fi_FI fr_XX gu_IN hi_IN it_IT ja_XX kk_KZ ko_KR lt_LT lv_LV my_MM ne_NP nl_XX ro_RO
ru_RU si_LK tr_TR vi_VN zh_CN
"""
_LANGUAGES_50 = """
af_ZA az_AZ bn_IN fa_IR he_IL hr_HR id_ID ka_GE km_KH mk_MK ml_IN mn_MN mr_IN pl_PL ps_AF pt_XX sv_SE sw_KE ta_IN te_IN
th_TH tl_XX uk_UA ur_PK xh_ZA gl_ES sl_SI
"""
MBART = _LANGUAGES.split()
MBART50 = MBART + _LANGUAGES_50.split()


def plain(model: SentencePieceModel, tokens: Mapping[str, str], config: Mapping[str, Any]) -> Scored:
    """Return the pieces with their scores.

    Args:
        tokens: the special tokens by name.
        config: the entries of `tokenizer_config.json`.
    """
    return list(map(list, zip(model.pieces, model.scores, strict=True)))


def t5(model: SentencePieceModel, tokens: Mapping[str, str], config: Mapping[str, Any]) -> Scored:
    """Return the pieces and T5's sentinels, the last one first."""
    return plain(model, tokens, config) + _unscored(sentinels(config)[::-1])


def sentinels(config: Mapping[str, Any]) -> list[str]:
    """Return T5's sentinels, <extra_id_0> and so on, as many as the config says."""
    count = config.get("extra_ids")
    count = count if type(count) is int and 0 <= count <= MAX_EXTRA_IDS else EXTRA_IDS
    return [f"<extra_id_{i}>" for i in range(count)]


def fairseq(model: SentencePieceModel, tokens: Mapping[str, str], config: Mapping[str, Any]) -> Scored:
    """Return XLM-RoBERTa's vocabulary: special tokens in place of the first three pieces, and the mask at the end."""
    return _first(tokens) + plain(model, tokens, config)[3:] + _unscored([tokens["mask_token"]])


def camembert(model: SentencePieceModel, tokens: Mapping[str, str], config: Mapping[str, Any]) -> Scored:
    """Return CamemBERT's vocabulary, whose first tokens are not used but for two."""
    first = ["<s>NOTUSED", tokens["pad_token"], "</s>NOTUSED", tokens["unk_token"]]
    rest = plain(model, tokens, config)[1:]
    return [*_unscored(first), ["<unk>NOTUSED", -100.0], *rest, *_unscored([tokens["mask_token"]])]


def mbart(model: SentencePieceModel, tokens: Mapping[str, str], config: Mapping[str, Any]) -> Scored:
    """Return mBART's vocabulary: as XLM-RoBERTa's, with languages before the mask."""
    return _first(tokens) + plain(model, tokens, config)[3:] + _unscored([*MBART, tokens["mask_token"]])


def mbart50(model: SentencePieceModel, tokens: Mapping[str, str], config: Mapping[str, Any]) -> Scored:
    """Return mBART-50's vocabulary, with more languages."""
    return _first(tokens) + plain(model, tokens, config)[3:] + _unscored([*MBART50, tokens["mask_token"]])


def nllb(model: SentencePieceModel, tokens: Mapping[str, str], config: Mapping[str, Any]) -> Scored:
    """Return NLLB's vocabulary: special tokens, then the other pieces. Its languages are in the config."""
    first = _first(tokens)
    special = {token for token, _ in first}
    return first + [[piece, score] for piece, score in plain(model, tokens, config) if piece not in special]


def _first(tokens: Mapping[str, str]) -> Scored:
    return _unscored([tokens[name] for name in ("cls_token", "pad_token", "eos_token", "unk_token")])


def _unscored(tokens: list[str]) -> Scored:
    return [[token, 0.0] for token in tokens]
