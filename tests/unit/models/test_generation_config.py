"""generation_config.json: valid contents, and precedence of command-line options."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pytest

from tallow.cli.language_model import add_sampling_options, sampler
from tallow.errors import ArgumentError, CheckpointError
from tallow.generation import RepetitionPenalty
from tallow.models.generation_config import GENERATION, GenerationConfig


def test_no_file_means_greedy(tmp_path: Path) -> None:
    for folder in (None, tmp_path):
        config = GenerationConfig.from_folder(folder)
        assert config == GenerationConfig()
        assert config.sampling == {"temperature": 0.0, "repetition_penalty": 1.0}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "JSON"),
        ('{"temperature": "hot"}', "temperature='hot'"),
        ('{"temperature": -1}', "temperature=-1"),
        ('{"top_p": 1.5}', "top_p=1.5"),
        ('{"top_k": -3}', "top_k=-3"),
        ('{"min_p": 2}', "min_p=2"),
        ('{"repetition_penalty": 0}', "repetition_penalty=0"),
        ('{"do_sample": "yes"}', "do_sample='yes'"),
        ('{"eos_token_id": ["</s>"]}', "eos_token_id"),
        ('{"typical_p": 0}', "typical_p=0"),
        ('{"eta_cutoff": 1}', "eta_cutoff=1"),
        ('{"top_h": 2}', "top_h=2"),
        ('{"num_beams": 0}', "num_beams=0"),
        ('{"max_new_tokens": -1}', "max_new_tokens=-1"),
        ('{"bad_words_ids": 5}', "bad_words_ids=5"),
        ('{"bad_words_ids": [[]]}', "bad_words_ids"),
        ('{"bad_words_ids": [["a"]]}', "bad_words_ids"),
        ('{"sequence_bias": [[1, 2.0]]}', "sequence_bias"),
        ('{"sequence_bias": [[[1], "a"]]}', "sequence_bias"),
        ('{"suppress_tokens": "all"}', "suppress_tokens"),
        ('{"stop_strings": [""]}', "stop_strings"),
        ('{"stop_strings": 3}', "stop_strings=3"),
        ('{"exponential_decay_length_penalty": [1]}', "exponential_decay_length_penalty"),
        ('{"early_stopping": 1}', "early_stopping=1"),
    ],
)
def test_invalid_values_are_refused(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / GENERATION).write_text(text)
    with pytest.raises(CheckpointError, match=message):
        GenerationConfig.from_folder(tmp_path)


@pytest.mark.parametrize(
    ("config", "options", "expected"),
    [
        ({}, [], {"temperature": 0.5, "top_k": None, "top_p": 0.9}),
        ({"repetition_penalty": 2.0, "temperature": 3.0}, ["--top-k", "7"], {"temperature": 0.5, "top_k": 7}),
        ({"do_sample": False, "temperature": 3.0}, [], {"temperature": 0}),
        ({"do_sample": False}, ["--temperature", "0.3"], {"temperature": 0.3, "top_p": 1.0}),
        ({"do_sample": True}, [], {"temperature": 1.0, "top_k": 50, "top_p": 1.0}),
        ({"do_sample": True, "top_k": None}, [], {"top_k": None}),
        (
            {"do_sample": True, "top_p": 0.6},
            ["--top-k", "0", "--min-p", "0.1"],
            {"top_k": None, "min_p": 0.1, "top_p": 0.6},
        ),
        ({"do_sample": True, "temperature": 0.6}, ["--temperature", "0"], {"temperature": 0}),
    ],
)
def test_options_go_before_the_file_and_the_file_before_the_command(
    config: dict[str, Any], options: list[str], expected: dict[str, Any]
) -> None:
    parser = argparse.ArgumentParser()
    add_sampling_options(parser, temperature=0.5, top_p=0.9)
    sampler_made = sampler(parser.parse_args(options), GenerationConfig(**config))
    assert {name: getattr(sampler_made, name) for name in expected} == expected
    assert sampler_made.processors == [RepetitionPenalty(2.0)] * ("repetition_penalty" in config)


def test_ids_outside_the_vocabulary() -> None:
    for entries in ({"bad_words_ids": ((9,),)}, {"forced_eos_token_id": (9,)}, {"sequence_bias": (((1, 9), 1.0),)}):
        with pytest.raises(ArgumentError, match="token 9 is outside the vocabulary of 9"):
            GenerationConfig(**entries).rules([1], 3, [2], 9)
    assert len(GenerationConfig(suppress_tokens=(9, -1)).rules([1], 3, [2], 9)) == 1  # ruling out what is not there


def test_a_limit_of_new_tokens_goes_before_one_with_the_prompt() -> None:
    assert GenerationConfig().most_tokens(5) is None
    assert GenerationConfig(max_length=7).most_tokens(5) == 2
    assert GenerationConfig(max_length=7, max_new_tokens=9).most_tokens(8) == 9
    with pytest.raises(ArgumentError, match="the prompt takes 7 tokens"):
        GenerationConfig(max_length=7).most_tokens(7)


def test_a_new_minimum_goes_before_one_with_the_prompt() -> None:
    names = [type(rule).__name__ for rule in GenerationConfig(min_length=7, min_new_tokens=2).rules([1], 3, [2], 9)]
    assert names == ["MinNewTokens"]
    assert GenerationConfig(min_length=7, min_new_tokens=0).rules([1], 3, [2], 9) == []
