"""`GenerationConfig` has the entries, defaults, checks and files of transformers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.transformers.both import both, both_raise

from tallow.errors import ArgumentError, TallowWarning


def entries(config: Any) -> dict[str, Any]:
    """Return the entries, without those that only name the library."""
    return {k: v for k, v in sorted(config.to_dict().items()) if not k.startswith("_") and k != "transformers_version"}


def test_entries() -> None:
    both(lambda tf, torch: entries(tf.GenerationConfig()))
    both(lambda tf, torch: sorted(tf.GenerationConfig._get_default_generation_params().items(), key=str)[:-1] and None)
    both(lambda tf, torch: entries(tf.GenerationConfig(max_new_tokens=5, num_beams=3, own=[1], eos_token_id=[1, 2])))


def test_the_defaults_of_generate() -> None:
    def program(tf: Any, torch: Any) -> Any:
        defaults = tf.GenerationConfig._get_default_generation_params()
        return {name: value for name, value in sorted(defaults.items()) if value is not None}

    both(program)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"do_sample": True},
        {"num_beams": 3},
        {"num_beams": 3, "do_sample": True},
        {"num_beams": 4, "num_beam_groups": 2},
        {"prompt_lookup_num_tokens": 3},
        {"penalty_alpha": 0.6, "top_k": 4},
        {"dola_layers": "low"},
        {"constraints": [1]},
    ],
)
@pytest.mark.filterwarnings("ignore:GenerationConfig")
def test_modes(options: dict[str, Any]) -> None:
    both(lambda tf, torch: str(tf.GenerationConfig(**options).get_generation_mode().value))


@pytest.mark.parametrize(
    "options",
    [
        {"early_stopping": "always"},
        {"max_new_tokens": 0},
        {"num_return_sequences": 2},
        {"num_return_sequences": 3, "num_beams": 2},
        {"cache_implementation": "large"},
        {"suppress_tokens": [3], "forced_bos_token_id": 3},
        {"assistant_ensemble_weight": 1.0},
        {"streamer": 1},
    ],
)
def test_entries_that_are_invalid(options: dict[str, Any]) -> None:
    both_raise(lambda tf, torch: tf.GenerationConfig(**options), errors=ArgumentError)


@pytest.mark.parametrize(
    "options",
    [
        {"do_sample": False, "temperature": 0.5},
        {"num_beams": 1, "length_penalty": 2.0},
        {"use_cache": False, "cache_implementation": "static"},
        {"output_scores": True},
        {"pad_token_id": -1},
    ],
)
def test_entries_without_effect(options: dict[str, Any]) -> None:
    from tallow.transformers import GenerationConfig

    with pytest.warns(TallowWarning, match=list(options)[-1]):
        config = GenerationConfig(**options)
    with pytest.raises(ArgumentError):
        config.validate(strict=True)


def test_update() -> None:
    def program(tf: Any, torch: Any) -> Any:
        config = tf.GenerationConfig(max_new_tokens=5)
        unused = config.update(max_new_tokens=7, top_p=None, unknown=3)
        kept = config.update(defaults_only=True, max_new_tokens=9, num_beams=2)
        config.update(allow_custom_entries=True, own=4)
        return unused, kept, entries(config)

    both(program)


def test_files(tmp_path: Path) -> None:
    def program(tf: Any, torch: Any) -> Any:
        folder = tmp_path / tf.__name__
        tf.GenerationConfig(max_new_tokens=5, num_beams=3, eos_token_id=[1, 2], own="x").save_pretrained(folder)
        config, unused = tf.GenerationConfig.from_pretrained(folder, num_beams=2, other=1, return_unused_kwargs=True)
        again = tf.GenerationConfig.from_pretrained(folder)
        return entries(config), unused, again == tf.GenerationConfig(**entries(again)), again == config

    both(program)


def test_each_reads_the_file_of_the_other(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    import tallow.transformers as ours

    for writer, reader in ((transformers, ours), (ours, transformers)):
        writer.GenerationConfig(do_sample=True, top_k=3, bad_words_ids=[[1], [2, 3]]).save_pretrained(tmp_path)
        config = reader.GenerationConfig.from_pretrained(tmp_path)
        assert (config.do_sample, config.top_k, config.bad_words_ids) == (True, 3, [[1], [2, 3]])


def test_of_a_models_config() -> None:
    def program(tf: Any, torch: Any) -> Any:
        config = tf.GenerationConfig.from_model_config({"eos_token_id": 3, "hidden_size": 8, "output_attentions": True})
        return entries(config)

    both(program)
