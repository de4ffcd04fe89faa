"""generation_config.json: valid contents, and precedence of command-line options."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pytest

from tallow.cli.language_model import add_sampling_options, sampler
from tallow.errors import CheckpointError
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
