"""Models' arguments and methods: losses, caches, embeddings, files and training, as in transformers."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.transformers.both import both, both_raise
from tests.transformers.folders import Folders

import tallow as tl
import tallow.transformers
from tallow.errors import ArgumentError, CheckpointError, TallowWarning, UnsupportedError

IDS = [[5, 6, 7, 8, 9, 10], [11, 12, 13, 14, 15, 16]]
MASK = [[1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 1]]
LEFT = [[0, 0, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1]]


def load(tf: Any, folders: Folders, name: str, **options: Any) -> Any:
    return getattr(tf, name).from_pretrained(folders(name), **options)


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        ("BertForMaskedLM", [[-100, 6, -100, 8, 9, 10], [11, -100, 13, 14, 15, -100]]),
        ("ModernBertForMaskedLM", [[-100, 6, -100, 8, -100, -100], [11, -100, 13, 14, 15, -100]]),
        ("LlamaForCausalLM", IDS),
        ("LlamaForTokenClassification", [[0, 1, 1, 0, -100, -100], [0, 1, 0, 1, 1, 0]]),
        ("GPT2LMHeadModel", [[5, 6, -100, -100, 9, 10], [11, 12, 13, 14, 15, 16]]),
        ("DistilBertForSequenceClassification", [1, 2]),
        ("BertForSequenceClassification", [[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]),
        ("RobertaForTokenClassification", [[0, 1, 2, -100, 0, 0], [0, 1, 2, 2, 1, 0]]),
        ("T5ForConditionalGeneration", IDS),
        ("BartForConditionalGeneration", [[5, 6, 7, -100], [8, 9, 10, 11]]),
    ],
)
def test_losses(name: str, labels: Any, folders: Folders) -> None:
    def program(tf: Any, torch: Any) -> Any:
        model = load(tf, folders, name)
        result = model(torch.tensor(IDS), attention_mask=torch.tensor(MASK), labels=torch.tensor(labels))
        result.loss.backward()
        grads = sum(float(p.grad.abs().sum()) for p in model.parameters() if p.grad is not None)
        counted = model(torch.tensor(IDS), labels=torch.tensor(labels), num_items_in_batch=torch.tensor(7)).loss
        return [result.loss, grads > 0, model.config.problem_type, counted]

    both(program)


def test_loss_functions_of_classes(folders: Folders) -> None:
    """They are called by heads that programs write, with transformers' arguments."""

    def program(tf: Any, torch: Any) -> Any:
        ids, found = torch.tensor(IDS), []
        model = load(tf, folders, "LlamaForCausalLM")
        logits = torch.arange(2 * 6 * 40).reshape(2, 6, 40).float().cos()
        for options in ({"labels": ids}, {"labels": None, "shift_labels": ids}, {"labels": ids, "ignore_index": 8}):
            found.append(model.loss_function(logits=logits, vocab_size=40, **options))
        found.append(model.loss_function(logits, ids, 40, num_items_in_batch=3))
        classifier = load(tf, folders, "BertForSequenceClassification")
        found.append(classifier.loss_function(torch.tensor([2, 0]), logits[:, 0, :3], classifier.config))
        labeller = load(tf, folders, "BertForTokenClassification")
        found.append(labeller.loss_function(logits[..., :3], ids % 3, labeller.config))
        return found

    both(program)


def test_inputs_of_a_loop_that_a_program_writes(folders: Folders) -> None:
    def program(tf: Any, torch: Any) -> Any:
        model, ids = load(tf, folders, "LlamaForCausalLM"), torch.tensor(IDS)
        with torch.no_grad():
            past = model(ids[:, :-1], use_cache=True).past_key_values
            inputs = model.prepare_inputs_for_generation(
                ids, next_sequence_length=1, past_key_values=past, attention_mask=torch.tensor(MASK) * 0 + 1
            )
            return [sorted(inputs), inputs["input_ids"], model(**inputs).logits]

    both(program)


def test_inputs_that_a_class_prepares_itself_are_not_ignored(folders: Folders) -> None:
    import tallow
    import tallow.transformers as tf

    class Own(tf.LlamaForCausalLM):
        def prepare_inputs_for_generation(self, input_ids: Any, **kwargs: Any) -> Any:
            return {"input_ids": input_ids[:, :1]}

    with pytest.raises(ArgumentError, match="prepare_inputs_for_generation is not called"):
        Own.from_pretrained(folders("LlamaForCausalLM")).generate(tallow.tensor(IDS), max_new_tokens=2)


def test_losses_of_images(folders: Folders) -> None:
    def program(tf: Any, torch: Any) -> Any:
        model = load(tf, folders, "ViTForImageClassification")
        pixels = torch.arange(2 * 3 * 24 * 24).reshape(2, 3, 24, 24) / 1000.0
        labels = torch.tensor([0, 1])
        return [model(pixels, labels=labels, num_items_in_batch=count).loss for count in (None, torch.tensor(7))]

    both(program)


@pytest.mark.parametrize("name", ["LlamaForCausalLM", "BertModel", "T5ForConditionalGeneration"])
def test_attentions_of_padding_are_finite(name: str, folders: Folders) -> None:
    def program(tf: Any, torch: Any) -> Any:
        model = load(tf, folders, name, attn_implementation="eager")
        written = {"decoder_input_ids": torch.tensor(IDS)} if model.config.is_encoder_decoder else {}
        with torch.no_grad():
            result = model(torch.tensor(IDS), attention_mask=torch.tensor(LEFT), output_attentions=True, **written)
        attentions = result.cross_attentions if written else result.attentions
        return [[bool(torch.isfinite(each).all()) for each in attentions], [each[0, :, 2:] for each in attentions]]

    both(program)


@pytest.mark.parametrize("name", ["T5ForConditionalGeneration", "WhisperForConditionalGeneration"])
def test_sources_are_projected_once(name: str, folders: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cached step reads the source's keys in the cache, whose rows follow the texts."""

    def program(tf: Any, torch: Any) -> Any:
        model, steps = load(tf, folders, name), torch.tensor([[5], [11]])
        source = torch.arange(2 * 80 * 100).reshape(2, 80, 100) / 8000.0 if "Whisper" in name else torch.tensor(IDS)
        with torch.no_grad():
            first = model(source, decoder_input_ids=torch.tensor(IDS), use_cache=True)
            encoded, past = (first.encoder_last_hidden_state,), first.past_key_values
            if tf is tallow.transformers:
                monkeypatch.setattr(type(model), "_source", None)
            rest = model(encoder_outputs=encoded, decoder_input_ids=steps, past_key_values=past).logits
            past.reorder_cache(torch.tensor([1, 0]))
            swapped = model(encoder_outputs=encoded, decoder_input_ids=steps, past_key_values=past).logits
            past.batch_select_indices(torch.tensor([1]))
            past.batch_repeat_interleave(2)
            alone = model(encoder_outputs=encoded, decoder_input_ids=steps, past_key_values=past).logits
        return [rest, swapped, alone]

    both(program)


def test_answers(folders: Folders) -> None:
    def program(tf: Any, torch: Any) -> Any:
        model = load(tf, folders, "BertForQuestionAnswering")
        places = {"start_positions": torch.tensor([1, 9]), "end_positions": torch.tensor([2, 3])}
        result = model(torch.tensor(IDS), **places)
        return [result.loss, result.start_logits, result.end_logits]

    both(program)


@pytest.mark.parametrize("name", ["LlamaForCausalLM", "GPT2LMHeadModel", "Gemma2ForCausalLM", "FalconForCausalLM"])
def test_caches_padding_and_embeddings(name: str, folders: Folders) -> None:
    def program(tf: Any, torch: Any) -> Any:
        model, ids, left = load(tf, folders, name), torch.tensor(IDS), torch.tensor(LEFT)
        with torch.no_grad():
            first = model(ids[:, :4], use_cache=True)
            rest = model(ids[:, 4:], past_key_values=first.past_key_values)
            padded = model(ids, attention_mask=left).logits
            embeds = model.get_input_embeddings()(ids)
            kept = model(inputs_embeds=embeds, logits_to_keep=2)
        return [rest.logits, rest.past_key_values.get_seq_length(), padded[0, 2:], padded[1], kept.logits]

    both(program)


@pytest.mark.parametrize("name", ["LlamaForCausalLM", "BartForConditionalGeneration"])
def test_caches_of_calls_that_autograd_records(name: str, folders: Folders) -> None:
    """In evaluation mode a result has a cache, as in a loop that forgets `no_grad`; gradients are those without it."""

    def program(tf: Any, torch: Any) -> Any:
        model, ids, found = load(tf, folders, name), torch.tensor(IDS), []
        written = model.config.is_encoder_decoder
        for cached in (True, False):
            model.zero_grad()
            result = model(ids, use_cache=cached, **({"decoder_input_ids": ids} if written else {}))
            result.logits.sum().backward()
            found += [result.logits, model.get_input_embeddings().weight.grad]
            if cached:
                past = result.past_key_values
        step = {"decoder_input_ids" if written else "input_ids": torch.tensor([[5], [11]])}
        step |= {"encoder_outputs": (result.encoder_last_hidden_state,)} if written else {}
        return [*found, model(past_key_values=past, **step).logits, past.get_seq_length()]

    both(program)


@pytest.mark.parametrize("name", ["LlamaForCausalLM", "BartForConditionalGeneration"])
def test_gradients_that_a_cache_cuts_are_warned_of(name: str, folders: Folders) -> None:
    tf: Any = tallow.transformers
    model, ids = load(tf, folders, name), tl.tensor(IDS)
    name_of_ids, source = (
        ("decoder_input_ids", {"input_ids": ids}) if model.config.is_encoder_decoder else ("input_ids", {})
    )

    def loss(first: Any) -> Any:
        with first:
            past = model(**{name_of_ids: ids[:, :3], "use_cache": True} | source).past_key_values
        return model(**{name_of_ids: ids[:, 3:], "past_key_values": past} | source).logits.sum()

    loss(tl.no_grad()).backward()  # as transformers: the cache is a constant
    with pytest.warns(TallowWarning, match="gradients end at the tokens in past_key_values"):
        loss(tl.enable_grad()).backward()


def test_numbers_of_layers_are_compared_with_the_file(folders: Folders, tmp_path: Path) -> None:
    shutil.copytree(folders("BertModel"), tmp_path, dirs_exist_ok=True)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 10**9}))
    with pytest.raises(CheckpointError, match="num_hidden_layers=1000000000"):
        tallow.transformers.AutoModel.from_pretrained(tmp_path)


def test_positions(folders: Folders) -> None:
    def program(tf: Any, torch: Any) -> Any:
        ids, places = torch.tensor(IDS), torch.tensor([[3, 4, 5, 6, 7, 8]])
        with torch.no_grad():
            return [
                load(tf, folders, name)(ids, position_ids=places)[0]
                for name in ("BertModel", "GPT2LMHeadModel", "LlamaForCausalLM")
            ]

    both(program)


WITH_ENCODERS = ("BartForConditionalGeneration", "MBartForConditionalGeneration", "T5ForConditionalGeneration")


@pytest.mark.parametrize("name", WITH_ENCODERS)
@pytest.mark.parametrize("labelled", [False, True])
def test_fields_of_models_with_an_encoder(name: str, labelled: bool, folders: Folders) -> None:
    def program(tf: Any, torch: Any) -> Any:
        given = {"labels" if labelled else "decoder_input_ids": torch.tensor(IDS)}
        with torch.no_grad():
            return list(load(tf, folders, name)(torch.tensor(IDS), **given))

    both(program)


@pytest.mark.parametrize("name", ["BertForTokenClassification", "XLMRobertaXLForTokenClassification"])
def test_labels_of_padding(name: str, folders: Folders) -> None:
    """They count, but in the loss of XLM-RoBERTa-XL."""

    def program(tf: Any, torch: Any) -> Any:
        model, ids = load(tf, folders, name), torch.tensor(IDS)
        with torch.no_grad():
            return [model(ids, attention_mask=mask, labels=ids % 2).loss for mask in (None, torch.tensor(LEFT))]

    both(program)


def test_encoder_outputs(folders: Folders) -> None:
    def program(tf: Any, torch: Any) -> Any:
        model, ids = load(tf, folders, "T5ForConditionalGeneration"), torch.tensor(IDS)
        with torch.no_grad():
            encoded = model.get_encoder()(ids, attention_mask=torch.tensor(MASK))
            result = model(encoder_outputs=encoded, attention_mask=torch.tensor(MASK), decoder_input_ids=ids[:, :3])
        return [encoded.last_hidden_state, result.logits]

    both(program)


@pytest.mark.parametrize("size", ["50GB", "20KB"])
@pytest.mark.parametrize(
    "name", ["LlamaForCausalLM", "BertForMaskedLM", "T5ForConditionalGeneration", "MixtralForCausalLM"]
)
def test_the_other_library_reads_what_one_writes(name: str, size: str, folders: Folders, tmp_path: Path) -> None:
    import torch
    import transformers

    import tallow
    import tallow.transformers

    model = load(tallow.transformers, folders, name)
    model.save_pretrained(tmp_path, max_shard_size=size)
    other = getattr(transformers, name).from_pretrained(tmp_path)
    more = {"decoder_input_ids": IDS} if model.config.is_encoder_decoder else {}

    def run(model: Any, torch: Any) -> Any:
        with torch.no_grad():
            return model(torch.tensor(IDS), **{key: torch.tensor(value) for key, value in more.items()}).logits

    difference = abs(run(other, torch).numpy() - run(model, tallow).numpy()).max()
    assert difference < 1e-4
    assert (len(list(tmp_path.glob("*.safetensors"))) > 1) == (size == "20KB")


def test_sizes_and_names(folders: Folders) -> None:
    def program(tf: Any, torch: Any) -> Any:
        model = load(tf, folders, "BertForSequenceClassification")
        return [
            model.num_parameters(),
            model.num_parameters(exclude_embeddings=True),
            str(model.dtype).rpartition(".")[2],
            str(model.device),
            type(model.base_model).__name__.startswith("Bert"),
            tuple(model.get_input_embeddings().weight.shape),
            model.config.id2label,
            model.can_generate(),
        ]

    both(program)


@pytest.mark.parametrize("name", ["LlamaForCausalLM", "Qwen3ForCausalLM", "BertForMaskedLM"])
def test_vocabularies_grow(name: str, folders: Folders) -> None:
    def program(tf: Any, torch: Any) -> Any:
        model, ids = load(tf, folders, name), torch.tensor(IDS)
        size = model.config.vocab_size
        table = model.resize_token_embeddings(size + 3)
        with torch.no_grad():
            logits = model(ids).logits
        rounded = model.resize_token_embeddings(pad_to_multiple_of=64)
        return [tuple(table.weight.shape), tuple(logits.shape), logits[..., :size], rounded.weight.shape[0] % 64]

    both(program)


def test_gradient_checkpointing_gives_the_same_gradients(folders: Folders) -> None:
    import tallow
    import tallow.transformers

    grads = []
    for checkpointed in (False, True):
        model = load(tallow.transformers, folders, "Qwen3ForCausalLM").train()
        if checkpointed:
            model.gradient_checkpointing_enable()
        model(tallow.tensor(IDS), labels=tallow.tensor(IDS)).loss.backward()
        grads.append([p.grad.numpy() for p in model.parameters()])
    assert all((abs(a - b) < 1e-5).all() for a, b in zip(*grads, strict=True))


def test_new_heads_and_loading_info(folders: Folders) -> None:
    import tallow.transformers

    folder = folders("BertForMaskedLM")
    with pytest.warns(TallowWarning, match=r"classifier\.bias, classifier\.weight|classifier\.weight"):
        model, info = tallow.transformers.AutoModelForSequenceClassification.from_pretrained(
            folder, num_labels=4, output_loading_info=True
        )
    assert model.config.num_labels == 4
    assert {"classifier.weight", "classifier.bias"} <= info["missing_keys"]


def test_bits_and_bytes_become_blocks(folders: Folders) -> None:
    import tallow
    import tallow.transformers as tf

    with pytest.warns(TallowWarning, match="Q8_0"):
        model = tf.AutoModelForCausalLM.from_pretrained(
            folders("Qwen3ForCausalLM"), quantization_config=tf.BitsAndBytesConfig(load_in_8bit=True)
        )
    plain = load(tf, folders, "Qwen3ForCausalLM")
    with tallow.no_grad():
        ours, theirs = (m(tallow.tensor(IDS)).logits.numpy() for m in (model, plain))
    assert abs(ours - theirs).max() < 0.3
    assert abs(ours - theirs).max() > 0


@pytest.mark.parametrize("name", ["BertForMultipleChoice", "RobertaForMultipleChoice", "ModernBertForMultipleChoice"])
def test_choices(name: str, folders: Folders) -> None:
    def program(tf: Any, torch: Any) -> Any:
        model = tf.AutoModelForMultipleChoice.from_pretrained(folders(name))
        ids = torch.tensor([IDS, IDS[::-1]])
        mask = torch.tensor([MASK, MASK[::-1]])
        result = model(ids, attention_mask=mask, labels=torch.tensor([1, 0]))
        embeds = model.get_input_embeddings()(ids)
        return [result.loss, result.logits, model(inputs_embeds=embeds, attention_mask=mask).logits]

    both(program)


def test_next_sentences(folders: Folders) -> None:
    def program(tf: Any, torch: Any) -> Any:
        model = tf.AutoModelForNextSentencePrediction.from_pretrained(folders("BertForNextSentencePrediction"))
        segments = torch.tensor([[0, 0, 0, 1, 1, 1]] * 2)
        result = model(torch.tensor(IDS), token_type_ids=segments, labels=torch.tensor([1, 0]))
        return [result.loss, result.logits]

    both(program)


DECODERS = ["LlamaForCausalLM", "GPT2LMHeadModel", "Qwen2ForSequenceClassification", "LlamaForTokenClassification"]


@pytest.mark.parametrize("name", [*DECODERS, "LlamaModel", "Gemma2ForCausalLM"])
@pytest.mark.parametrize("kind", ["bool", "float"])
def test_masks_of_four_dimensions(name: str, kind: str, folders: Folders) -> None:
    seen = np.tri(6, dtype=bool) & (np.arange(6) != 2)
    seen[2, 2] = True

    def program(tf: Any, torch: Any) -> Any:
        # The eager attention of transformers adds 0 and 1.
        model = load(tf, folders, name, attn_implementation="sdpa" if kind == "bool" else "eager")
        mask = torch.tensor(np.broadcast_to(seen, (2, 1, 6, 6)).copy())
        if kind == "float":
            mask = torch.where(mask, 0.0, torch.finfo(torch.float32).min)
        with torch.no_grad():
            return model(torch.tensor(IDS), attention_mask=mask)[0]

    if kind == "bool" and name.startswith("Gemma2"):
        pytest.skip("only the eager attention of transformers caps scores")
    both(program)


@pytest.mark.parametrize("name", [*DECODERS, "LlamaModel", "Phi3ForCausalLM"])
def test_texts_that_follow_each_other(name: str, folders: Folders) -> None:
    """Positions that begin again begin another text, which does not see the one before."""

    def program(tf: Any, torch: Any) -> Any:
        model, ids = load(tf, folders, name), torch.tensor(IDS)
        places = torch.tensor([[0, 1, 2, 0, 1, 2]])
        jumps = torch.tensor([[0, 1, 5, 6, 7, 9]] * 2)
        with torch.no_grad():
            ones = torch.ones_like(ids)
            masked = model(ids, position_ids=jumps, attention_mask=ones, use_cache=False)[0]
            return [model(ids, position_ids=places, use_cache=False)[0], masked]

    both(program)


def test_texts_that_follow_each_other_are_refused_by_layers_with_states() -> None:
    tf = tallow.transformers
    sizes = {"vocab_size": 9, "hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1, "layer_types": ["conv", "full_attention"]}
    model = tf.Lfm2ForCausalLM(tf.Lfm2Config(**sizes, **heads))
    ids, places = tl.tensor([[3, 4, 5, 6]]), tl.tensor([[0, 1, 0, 1]])
    with pytest.raises(UnsupportedError, match="several texts in a row"):
        model(ids, position_ids=places, use_cache=False)


@pytest.mark.parametrize("name", ["LlamaForCausalLM", "Qwen2ForSequenceClassification"])
@pytest.mark.parametrize("use_cache", [None, False, True])
def test_positions_that_do_not_rise_by_one(name: str, use_cache: bool | None, folders: Folders) -> None:
    rows = [[0, 0, 0, 0, 0, 0], [5, 4, 3, 2, 1, 0], [7, 7, 7, 8, 9, 10], [-3, -1, 0, 1, 2, 3], [0, 1, 2, 0, 1, 2]]

    def program(tf: Any, torch: Any) -> Any:
        model, ids = load(tf, folders, name), torch.tensor(IDS)
        padded = torch.tensor([[1, 1, 1, 1, 1, 1], [0, 0, 1, 1, 1, 1]])
        with torch.no_grad():
            return [
                model(ids, position_ids=torch.tensor([row]), attention_mask=mask, use_cache=use_cache)[0][..., -1]
                for row in rows
                for mask in (None, padded)
            ]

    both(program)


PLACES = [
    ([[0, 1, 2, 3]] * 2, [[4, 5]] * 2),
    (None, [[9, 10]] * 2),
    ([[5, 6, 7, 8]] * 2, [[4, 5]] * 2),
    ([[5, 6, 7, 8], [0, 1, 2, 3]], [[9, 10], [7, 8]]),
    ([[0, 1, 0, 1]] * 2, [[2, 3]] * 2),
    ([[0, 1, 3, 5]] * 2, [[6, 9]] * 2),
]


@pytest.mark.parametrize(("before", "after"), PLACES)
def test_positions_after_a_cache(before: Any, after: Any, folders: Folders) -> None:
    def program(tf: Any, torch: Any) -> Any:
        model, ids = load(tf, folders, "LlamaForCausalLM"), torch.tensor(IDS)
        places = None if before is None else torch.tensor(before)
        with torch.no_grad():
            read = model(ids[:, :4], position_ids=places, use_cache=True)
            read.past_key_values.reorder_cache(torch.tensor([1, 0]))
            return model(ids[:, 4:6], position_ids=torch.tensor(after), past_key_values=read.past_key_values)[0]

    both(program)


@pytest.mark.parametrize("name", ["Qwen2ForSequenceClassification", "LlamaForTokenClassification"])
def test_caches_of_heads(name: str, folders: Folders) -> None:
    def program(tf: Any, torch: Any) -> Any:
        model, ids = load(tf, folders, name), torch.tensor(IDS)
        cache = tf.DynamicCache()
        with torch.no_grad():
            first = model(ids[:, :4], past_key_values=cache, use_cache=True)
            rest = model(ids[:, 4:], past_key_values=cache, use_cache=True)
        return [first.logits, rest.logits, cache.get_seq_length()]

    both(program)


@pytest.mark.parametrize("name", ["BertModel", "RobertaModel", "ViTModel"])
def test_models_without_a_pooler(name: str, folders: Folders) -> None:
    def program(tf: Any, torch: Any) -> Any:
        model = load(tf, folders, name, add_pooling_layer=False)
        size = 24 if name == "ViTModel" else 0
        inputs = torch.ones(1, 3, size, size) if size else torch.tensor(IDS)
        found = model(inputs)
        return [found.pooler_output, found.last_hidden_state, model.num_parameters()]

    both(program)


def test_labels_that_are_shifted_already(folders: Folders) -> None:
    def program(tf: Any, torch: Any) -> Any:
        ids = torch.tensor(IDS)
        shifted = torch.tensor([[6, 7, -100, 9, 10, -100], [12, 13, 14, 15, 16, -100]])
        return load(tf, folders, "LlamaForCausalLM")(ids, labels=ids, shift_labels=shifted).loss

    both(program)


def test_an_encoder_that_does_not_learn(folders: Folders) -> None:
    def program(tf: Any, torch: Any) -> Any:
        model = load(tf, folders, "WhisperForConditionalGeneration")
        model.freeze_encoder()
        return [[p.requires_grad for p in model.model.decoder.parameters()], any_learns(model.model.encoder)]

    both(program)


def any_learns(part: Any) -> bool:
    return any(p.requires_grad for p in part.parameters())


BITS: list[dict[str, Any]] = [
    {},
    {"load_in_8bit": True, "llm_int8_threshold": 5.0},
    {"load_in_4bit": True, "bnb_4bit_compute_dtype": "bfloat16", "bnb_4bit_quant_type": "nf4"},
    {"load_in_4bit": True, "bnb_4bit_use_double_quant": True},
]


@pytest.mark.parametrize("entries", BITS)
def test_settings_of_bits_and_bytes(entries: dict[str, Any]) -> None:
    def program(tf: Any, torch: Any) -> Any:
        config = tf.BitsAndBytesConfig(**entries)
        again = tf.BitsAndBytesConfig.from_dict(config.to_dict())
        found = [config.load_in_8bit, config.llm_int8_threshold, config.bnb_4bit_quant_type, again.load_in_4bit]
        found += [
            json.loads(json.dumps(entries, sort_keys=True)) for entries in (config.to_dict(), config.to_diff_dict())
        ]
        return [*found, config.to_json_string(), config.quantization_method(), config.is_quantizable()]

    both(program)


def test_both_kinds_of_bits() -> None:
    def program(tf: Any, torch: Any) -> Any:
        config = tf.BitsAndBytesConfig(load_in_4bit=True)
        config.load_in_8bit = True

    both_raise(program, errors=ArgumentError)
    both_raise(lambda tf, torch: tf.BitsAndBytesConfig(load_in_4bit="yes"), errors=TypeError)


def test_facts_about_a_cache(folders: Folders) -> None:
    def program(tf: Any, torch: Any) -> Any:
        with torch.no_grad():
            cache = load(tf, folders, "LlamaForCausalLM")(torch.tensor(IDS)).past_key_values
        facts = [cache.get_max_length(), list(cache.get_mask_sizes(3, 0)), cache.is_sliding, len(cache)]
        cache.crop(tokens_to_remove=-2)
        return [*facts, cache.get_seq_length(), cache.layers[0].is_initialized, cache.layers[1].keys]

    both(program)
