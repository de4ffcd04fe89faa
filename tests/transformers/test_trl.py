"""trl's trainers: the losses and metrics of each step equal those of trl 1.16."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.transformers import trl_cases

import tallow as tl
import tallow.transformers as mine
from tallow import trl
from tallow.cli import main
from tallow.errors import ArgumentError, UnsupportedError
from tallow.peft import LoraConfig, get_peft_model

LOGS: dict[str, list[dict[str, float]]] = json.loads(trl_cases.LOGS.read_text())
ARGUMENTS = trl_cases.ARGUMENTS


@pytest.mark.parametrize("name", trl_cases.CASES)
def test_logs_equal_those_of_trl(name: str, tmp_path: Path) -> None:
    case = trl_cases.CASES[name]
    logs = trl_cases.run(case, trl, mine, tl.tensor, list, str(tmp_path))
    assert [sorted(each) for each in logs] == [sorted(each) for each in LOGS[name]]
    for ours, theirs in zip(logs, LOGS[name], strict=True):
        if case.kind == "GRPO" and "eval_loss" in theirs:
            # The mean of trl takes as many answers as there are prompts; here it takes all of them.
            del ours["eval_loss"], theirs["eval_loss"]
        assert ours == pytest.approx(theirs, rel=2e-4, abs=2e-5)


def trainer(kind: str, out: Path, samples: Any, **options: Any) -> Any:
    tokens = trl_cases.tokenizer(mine)
    model = trl_cases.model(mine, kind, tl.tensor, len(tokens), str(out / "model"))
    names = {"peft_config", "reward_funcs", "eval_dataset", "compute_metrics"}
    extra = {name: options.pop(name) for name in names if name in options}
    config = getattr(trl, f"{kind}Config")(str(out), **{**ARGUMENTS, **options})
    return getattr(trl, f"{kind}Trainer")(
        model=model, args=config, train_dataset=samples, processing_class=tokens, **extra
    )


def test_an_adapter_is_trained_against_the_model_without_it(tmp_path: Path) -> None:
    run = trainer("DPO", tmp_path, trl_cases.PREFERRED, peft_config=LoraConfig(target_modules=["q_proj", "v_proj"]))
    frozen = {name: each.numpy().copy() for name, each in run.model.named_parameters() if not each.requires_grad}
    run.train()
    assert run.state.log_history[0]["loss"] == pytest.approx(0.693147, abs=1e-5)  # ln 2: both are the same at first
    assert run.state.log_history[1]["rewards/margins"] != 0
    assert all((frozen[name] == each.numpy()).all() for name, each in run.model.named_parameters() if name in frozen)


@pytest.mark.parametrize("kind", ["DPO", "GRPO"])
def test_an_adapter_of_the_model_is_its_own_reference(kind: str, tmp_path: Path) -> None:
    """As in trl, the model with the adapter as it was is the reference: at first both are the same."""
    tokens = trl_cases.tokenizer(mine)
    model = get_peft_model(
        trl_cases.model(mine, kind, tl.tensor, len(tokens), str(tmp_path / "model")),
        LoraConfig(target_modules=["q_proj", "v_proj"]),
    )
    with tl.no_grad():
        for each in model.parameters():
            if each.requires_grad:
                each.add_(0.3)
    samples: Any = trl_cases.PREFERRED
    extra: dict[str, Any] = {}
    options: dict[str, Any] = {}
    if kind == "GRPO":
        samples, extra = trl_cases.PROMPTS, {"reward_funcs": lambda completions, **_: [float(len(completions))] * 4}
        options = {"beta": 0.1, "num_generations": 4, "per_device_train_batch_size": 4, "max_completion_length": 3}
    config = getattr(trl, f"{kind}Config")(str(tmp_path), **{**ARGUMENTS, **options})
    run = getattr(trl, f"{kind}Trainer")(
        model=model, args=config, train_dataset=samples, processing_class=tokens, **extra
    )
    run.train()
    first = run.state.log_history[0]
    if kind == "DPO":
        assert first["loss"] == pytest.approx(0.693147, abs=1e-5)  # ln 2
    else:
        assert first["kl"] == pytest.approx(0, abs=1e-6)
    shared = {id(each) for each in model.parameters() if not each.requires_grad}
    assert shared < {id(each) for each in run.ref_model.parameters()}


def test_samples_are_evaluated_under_any_name_and_predicted(tmp_path: Path) -> None:
    run = trainer("DPO", tmp_path, trl_cases.PREFERRED, eval_dataset=trl_cases.PREFERRED)
    expected = run.evaluate()["eval_loss"]
    assert run.evaluate(trl_cases.PREFERRED, metric_key_prefix="test")["test_loss"] == expected
    assert run.evaluate({"some": trl_cases.PREFERRED})["eval_some_loss"] == expected
    assert run.evaluate(run.eval_dataset)["eval_loss"] == expected
    assert run.predict(trl_cases.PREFERRED).metrics["test_loss"] == expected


@pytest.mark.parametrize("packed", ["train", "eval"])
def test_what_is_not_packed_is_cut(packed: str, tmp_path: Path) -> None:
    options = {"packing": packed == "train", "eval_packing": packed == "eval", "max_length": 6}
    run = trainer("SFT", tmp_path, trl_cases.TEXTS, eval_dataset=trl_cases.TEXTS, **options)
    rows = run.eval_dataset if packed == "train" else run.train_dataset
    assert len(rows) == len(trl_cases.TEXTS)
    assert max(len(each["input_ids"]) for each in rows) == 6


def test_parts_that_are_none_are_missing(tmp_path: Path) -> None:
    """A table has None where a sample has no value of a column."""
    samples = [{"text": "two", "prompt": None, "completion": None}, {"text": None, **trl_cases.ANSWERS[0]}]
    alone = [samples[0]["text"], trl_cases.ANSWERS[0]]
    run = trainer("SFT", tmp_path, samples)
    expected = trainer("SFT", tmp_path / "other", [{"text": alone[0]}, alone[1]])
    assert run.train_dataset == expected.train_dataset


def test_rows_without_padding_have_the_length_that_is_asked_for(tmp_path: Path) -> None:
    run = trainer("SFT", tmp_path, trl_cases.TEXTS, padding_free=True, max_length=None, pad_to_multiple_of=32)
    batch = run.collate(run.train_dataset)
    whole = sum(len(each["input_ids"]) for each in run.train_dataset)
    assert whole % 32
    assert {tuple(each.shape) for each in batch.values()} == {(1, -(-whole // 32) * 32)}
    assert (batch["labels"][0, whole:] == -100).all()
    run.train()


def test_rows_without_labels_leave_the_weights_alone(tmp_path: Path) -> None:
    """Of a long prompt that is cut into rows, most have no label: their mean is 0, not 0 / 0."""
    sample = {"prompt": "the cat sat on the mat" * 5, "completion": " hello"}
    options = {"packing": True, "packing_strategy": "wrapped", "max_length": 8, "per_device_train_batch_size": 1}
    run = trainer("SFT", tmp_path, [sample], max_steps=8, **options)
    run.train()
    assert all(np.isfinite(each.detach().numpy()).all() for each in run.model.parameters())


def test_an_end_token_is_learned_and_ends_texts(tmp_path: Path) -> None:
    run = trainer("SFT", tmp_path, trl_cases.TEXTS, eos_token="<|end|>")
    end = run.processing_class.convert_tokens_to_ids("<|end|>")
    assert all(each["input_ids"][-1] == end for each in run.train_dataset)
    assert run.model.generation_config.eos_token_id == [end, 1]


def test_answers_are_drawn_and_rewards_rise(tmp_path: Path) -> None:
    """Answers that begin with a certain token are rewarded: the model learns to write it."""
    wanted = 250

    def reward(completion_ids: list[list[int]], **columns: Any) -> list[float]:
        return [float(ids[0] < wanted) for ids in completion_ids]

    run = trainer(
        *("GRPO", tmp_path, trl_cases.PROMPTS),
        reward_funcs=reward,
        num_generations=8,
        per_device_train_batch_size=16,
        max_completion_length=2,
        max_steps=12,
        learning_rate=5e-2,
    )
    run.train()
    rewards = [each["reward"] for each in run.state.log_history if "reward" in each]
    assert sum(rewards[-3:]) > sum(rewards[:3])


def test_each_prompt_of_an_evaluation_has_its_number_of_answers(tmp_path: Path) -> None:
    sizes = {"num_generations": 2, "num_generations_eval": 4, "per_device_eval_batch_size": 8}
    run = trainer("GRPO", tmp_path, trl_cases.PROMPTS, reward_funcs=len, eval_dataset=trl_cases.PROMPTS, **sizes)
    run.model.train()  # as in an evaluation between steps
    assert sorted(run.get_eval_dataloader().sampler) == [i for i in range(4) for _ in range(4)]
    run.args.per_device_eval_batch_size = 6
    with pytest.raises(ArgumentError, match="per_device_eval_batch_size=6"):
        run.evaluate()


def test_packed_rows_hold_each_sample_once() -> None:
    samples = [{"input_ids": list(range(size))} for size in (5, 1, 3, 2, 0, 4, 9)]
    rows = trl.pack_dataset(samples, 5)
    assert [row["seq_lengths"] for row in rows] == [[5], [5], [4, 1], [3, 2]]
    assert all(len(row["input_ids"]) == sum(row["seq_lengths"]) for row in rows)


@pytest.mark.parametrize(
    ("kind", "samples", "options", "words"),
    [
        ("SFT", [{"words": "a"}], {}, "it needs text, messages, prompt and completion, or input_ids"),
        ("SFT", ["a"], {}, "sample 0 is a str"),
        ("SFT", trl_cases.TEXTS, {"completion_only_loss": True}, "needs samples with a prompt"),
        ("SFT", trl_cases.TEXTS, {"packing": True, "max_length": None}, "packing needs max_length"),
        ("SFT", trl_cases.TEXTS, {"loss_type": "mse"}, "pass one of nll, dft"),
        ("DPO", trl_cases.PREFERRED, {"loss_type": "best"}, "pass one of sigmoid, hinge"),
        ("DPO", trl_cases.PREFERRED, {"loss_type": "aot", "f_divergence_type": "forward_kl"}, "'aot'"),
        ("DPO", [{"chosen": "a", "rejected": "a"}], {}, "are the same"),
        ("DPO", trl_cases.PREFERRED, {"max_length": 1}, "no samples to learn from, of 4"),
        ("GRPO", trl_cases.PROMPTS, {"reward_funcs": len, "num_generations": 3}, "no multiple of num_generations=3"),
        ("GRPO", trl_cases.TEXTS, {"reward_funcs": len, "num_generations": 2}, "no 'prompt'"),
        ("Reward", [{"chosen": "a"}], {}, "no 'rejected'"),
        ("SFT", [{**trl_cases.CHATS[0], "tools": "[{"}], {}, "is not JSON"),
        ("SFT", [{"text": None}], {}, "a text of a sample is a NoneType"),
        ("SFT", [{"prompt": "a", "completion": 5}], {}, "a prompt is a str, and its answer a int"),
        ("SFT", [{"input_ids": [1, 2, 3], "labels": [1]}], {}, "3 input_ids and 1 labels"),
        ("DPO", [{"prompt": "a", "chosen": "b", "rejected": [trl_cases.said("user", "c")]}], {}, "its answer a list"),
        ("Reward", [{"prompt": "a", "chosen": [], "rejected": "b"}], {}, "its answer a list"),
        ("Reward", trl_cases.PREFERRED, {"eos_token": "<none>"}, "eos_token='<none>' is no token"),
        ("SFT", trl_cases.TEXTS, {"pad_token": "<none>"}, "pad_token='<none>' is no token"),
        ("SFT", trl_cases.TEXTS, {"model_init_kwargs": {"dtype": "float32"}}, "model_init_kwargs with a model"),
    ],
)
def test_what_does_not_fit_is_named(
    kind: str, samples: Any, options: dict[str, Any], words: str, tmp_path: Path
) -> None:
    with pytest.raises(ArgumentError, match=words):
        trainer(kind, tmp_path, samples, **options)


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="use_vllm=True"):
        trl.GRPOConfig(str(tmp_path), use_vllm=True, num_generations=8)
    with pytest.raises(UnsupportedError, match=r"label_smoothing_factor=0\.1"):
        trl.SFTConfig(str(tmp_path), label_smoothing_factor=0.1)
    with pytest.raises(UnsupportedError, match="SFTTrainer: compute_metrics"):
        trainer("SFT", tmp_path, trl_cases.TEXTS, compute_metrics=len)


def test_a_reference_that_is_gone_is_named(tmp_path: Path) -> None:
    run = trainer("DPO", tmp_path, trl_cases.PREFERRED, precompute_ref_log_probs=True)
    with pytest.raises(ArgumentError, match="the reference is gone"):
        run.evaluate(trl_cases.PREFERRED)


# ---- tallow train --sft and --dpo


def model_folder(folder: Path) -> Path:
    tokens = trl_cases.tokenizer(mine)
    trl_cases.model(mine, "SFT", tl.tensor, len(tokens), str(folder))
    tokens.save_pretrained(folder)
    return folder


def written(path: Path, samples: list[Any]) -> str:
    path.write_text("".join(json.dumps(each) + "\n" for each in samples))
    return str(path)


def train(tmp_path: Path, *options: str) -> int:
    common = ("--model", str(tmp_path / "model"), "--batch-size", "2", "--device", "cpu")
    return main(["train", "--out", str(tmp_path / "out"), *common, *options])


def test_a_command_learns_answers_and_resumes(tmp_path: Path) -> None:
    folder = model_folder(tmp_path / "model")
    file = written(tmp_path / "samples.jsonl", trl_cases.ANSWERS)
    assert train(tmp_path, "--sft", file, "--steps", "2", "--learning-rate", "0.01", "--log-every", "1") == 0
    state = json.loads((tmp_path / "out" / "checkpoint-2" / "trainer_state.json").read_text())
    rates = [each["learning_rate"] for each in state["log_history"]]
    assert rates == pytest.approx([0.01, 0.0055])  # half way from the whole to a tenth
    assert train(tmp_path, "--sft", file, "--steps", "2", "--learning-rate", "0.01") == 2  # --out has a model
    assert train(tmp_path, "--sft", file, "--steps", "3", "--resume", "--packing") == 0
    before, after = (
        mine.AutoModelForCausalLM.from_pretrained(each).state_dict() for each in (folder, tmp_path / "out")
    )
    assert any((before[name].numpy() != each.numpy()).any() for name, each in after.items())
    assert (tmp_path / "out" / "checkpoint-3").is_dir()
    assert mine.AutoTokenizer.from_pretrained(tmp_path / "out").chat_template == trl_cases.CHAT


def test_a_command_learns_preferences_with_an_adapter(tmp_path: Path) -> None:
    model_folder(tmp_path / "model")
    file = written(tmp_path / "samples.jsonl", trl_cases.CHAT_PREFERRED)
    assert train(tmp_path, "--dpo", file, "--steps", "1", "--lora", "--eval", file, "--eval-every", "1") == 0
    assert (tmp_path / "out" / "adapter_model.safetensors").is_file()


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        ('{"text": "a"}\n{', [], "line 2 is not JSON"),
        ("[1]", [], "line 1 is no JSON object"),
        ("\n\n", [], "has no samples"),
        ('{"text": "a"}', ["--width", "8"], "--width with --sft"),
        ('{"text": "a"}', ["more.txt"], "--sft with texts"),
        ('{"text": "a"}', ["--resume"], "no checkpoint to resume"),
        ('{"text": "a"}', ["--dtype", "float16"], "--dtype float16 with --sft"),
        ('{"text": "a"}', ["--accumulate", "3"], "--batch-size 2 with --accumulate 3"),
    ],
)
def test_bad_samples_and_options_are_named(
    text: str, options: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model_folder(tmp_path / "model")
    file = tmp_path / "samples.jsonl"
    file.write_text(text)
    assert train(tmp_path, "--sft", str(file), "--steps", "1", *options) == 2
    assert words in capsys.readouterr().err


def test_nothing_to_train_on_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--out", str(tmp_path)]) == 2
    assert "pass texts, --sft or --dpo" in capsys.readouterr().err
