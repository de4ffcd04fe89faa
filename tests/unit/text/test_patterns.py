"""Tokenizer patterns: those of published tokenizers pass, those with exponential run time are refused."""

from __future__ import annotations

import pytest

from tallow.errors import TokenizerError
from tallow.text.patterns import check

PUBLISHED = {
    "GPT-2": r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    "Llama 3": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+",
    "o200k": r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "DeepSeek-V3": r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
    r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "BLOOM": r" ?[^(\s|[.,!?…。，、।۔،])]+",
    "Kimi": r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lo}&&[^\p{Han}]]*[\p{Ll}\p{Lo}&&[^\p{Han}]]+(?i:'s|'t)?",
    "CLIP": r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+",
    "digits in groups from the right": r"\p{N}{1,3}(?=(?:\p{N}{3})*(?:\P{N}|$))",
    "spaces": r" {2,}",
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_patterns_of_published_tokenizers_pass(name: str) -> None:
    check(PUBLISHED[name])


@pytest.mark.parametrize(
    "pattern",
    [
        *(r"(a+)+$", r"(a|a)*$", r"(?:a?)*b", r"(?i:a*)*", r"((a)+b?)+", r"(?<x>a+)+", r"(?=(a+)+b)", r"x|(y|(a+)+)"),
        *(r"(a{1,})+", r"(a{2,3})*", r"a{2}+*", r"a**", r"(a+){2,}", r"(a?){99}", r"(?:(?:(?:a?){3}){3}){3}"),
        *(r"a?" * 17, r"a*" * 5, r"(a*b*)(a*b*)c*", r"(a*){3}(a*){2}", r"\((a+)+\)", r"[\]](a+)+", r"\p{L}(a+)+"),
        *(r"[[](a+)+[]]", r"[^](a+)+[^]", r"[a[b]c](a+)+", r"[[a](a+)+]", r")(a+)+"),
        *(r"(?<a>b\g<a>?)", r"(?x)#[" + "\n(a+)+]", r"(?#[)(a+)+(?#])", r"(?~a)", r"(?(1)a|b)", r"a" * 20000),
    ],
)
def test_patterns_that_may_take_too_long_are_refused(pattern: str) -> None:
    with pytest.raises(TokenizerError, match="pattern"):
        check(pattern)


@pytest.mark.parametrize(
    "pattern", ["", "\\", "[", "[^", "(", ")", "{", "a{", "a{,}", "{1}", "(" * 9999, "[" * 9999, "\\p{", "|" * 99]
)
def test_invalid_patterns_are_left_to_the_engine(pattern: str) -> None:
    check(pattern)
