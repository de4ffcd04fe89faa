"""Pipelines that write texts: as transformers' own; those that version 5 took out, as the model computes them."""

from __future__ import annotations

from typing import Any

import pytest
from tests.transformers.both import both, both_raise
from tests.transformers.folders import Folders

from tallow.errors import ArgumentError

pytestmark = pytest.mark.filterwarnings("ignore:the text has", "ignore:generate. max_new_tokens takes precedence")
PROMPT = "The cat sat on"
CHAT = [{"role": "user", "content": "A dog!"}]
PREFILL = [*CHAT, {"role": "assistant", "content": "The cat"}]
GREEDY = {"do_sample": False, "max_new_tokens": 5}

WRITING: dict[str, tuple[Any, dict[str, Any]]] = {
    "a prompt": (PROMPT, {}),
    "prompts": ([PROMPT, "A dog!"], {}),
    "a batch": ([PROMPT, "A dog!", "Rain in the morning"], {"batch_size": 3}),
    "new text": (PROMPT, {"return_full_text": False}),
    "ids": (PROMPT, {"return_tensors": True}),
    "beams": (PROMPT, {"num_beams": 3, "num_return_sequences": 2}),
    "special tokens": (PROMPT, {"skip_special_tokens": False}),
    "a prefix": (PROMPT, {"prefix": "A dog! ", "return_full_text": False}),
    "a stop": (PROMPT, {"stop_sequence": ["e", "t"], "max_new_tokens": 8}),
    "a limit of all": (PROMPT, {"max_new_tokens": None, "max_length": 12}),
    "cut": (PROMPT * 4, {"truncation": True, "max_length": 10, "max_new_tokens": 3}),
    "a hole": (PROMPT * 4, {"handle_long_generation": "hole", "return_full_text": False}),
    "of the tokenizer": (PROMPT, {"tokenizer_encode_kwargs": {"add_special_tokens": True}}),
    "a chat": (CHAT, {}),
    "chats": ([CHAT, PREFILL], {}),
    "an answer begun": (PREFILL, {}),
    "another answer": (PREFILL, {"continue_final_message": False}),
    "only the answer": (CHAT, {"return_full_text": False}),
    "scores": (PROMPT, {"return_dict_in_generate": True, "output_scores": True}),
}


@pytest.mark.parametrize("case", WRITING)
def test_text_generation(folders: Folders, case: str) -> None:
    inputs, options = WRITING[case]
    folder = folders("LlamaForCausalLM")

    def program(tf: Any, torch: Any) -> Any:
        return tf.pipeline("text-generation", model=folder, device=-1)(inputs, **{**GREEDY, **options})

    both(program)


def test_arguments_of_the_pipeline_hold_for_calls(folders: Folders) -> None:
    folder = folders("GPT2LMHeadModel")

    def program(tf: Any, torch: Any) -> Any:
        pipe = tf.pipeline("text-generation", model=folder, device=-1, return_full_text=False, **GREEDY)
        config = tf.GenerationConfig(max_new_tokens=3, do_sample=False)
        return [pipe(text_inputs=PROMPT), pipe(PROMPT, max_new_tokens=2), pipe(PROMPT, generation_config=config)]

    both(program)


def test_generator_of_chats(folders: Folders) -> None:
    folder = folders("LlamaForCausalLM")

    def program(tf: Any, torch: Any) -> Any:
        pipe = tf.pipeline("text-generation", model=folder, device=-1, **GREEDY)
        return [list(pipe(chat for chat in [CHAT, PREFILL])), list(pipe(text for text in [PROMPT, "A"]))]

    both(program)


def test_streamer_gets_the_text(folders: Folders) -> None:
    folder = folders("LlamaForCausalLM")

    def program(tf: Any, torch: Any) -> Any:
        pieces: list[str] = []

        class Collected(tf.TextStreamer):  # type: ignore[misc]
            def on_finalized_text(self, text: str, stream_end: bool = False) -> None:
                pieces.append(text)

        pipe = tf.pipeline("text-generation", model=folder, device=-1)
        result = pipe(PROMPT, streamer=Collected(pipe.tokenizer, skip_prompt=True), **GREEDY)
        return ["".join(pieces), result]

    both(program)


@pytest.mark.parametrize(
    "options", [{"return_full_text": True, "return_tensors": True}, {"handle_long_generation": "x"}]
)
def test_text_generation_refuses(folders: Folders, options: dict[str, Any]) -> None:
    folder = folders("LlamaForCausalLM")

    def program(tf: Any, torch: Any) -> Any:
        return tf.pipeline("text-generation", model=folder, device=-1)(PROMPT, **options)

    both_raise(program, errors=ArgumentError)


# ---- tasks that version 5 took out: `expected` computes the result by the model


def generated(tf: Any, folder: str, texts: list[str], **options: Any) -> list[str]:
    tokenizer = tf.AutoTokenizer.from_pretrained(folder)
    model = tf.AutoModelForSeq2SeqLM.from_pretrained(folder)
    written = []
    for text in texts:
        encoded = tokenizer(text, return_tensors="pt")
        inputs = {name: encoded[name] for name in ("input_ids", "attention_mask")}
        written += tokenizer.batch_decode(model.generate(**inputs, **options), skip_special_tokens=True)
    return written


TASKS = {"translation": "translation", "summarization": "summary", "text2text-generation": "generated"}


@pytest.mark.parametrize("name", ["T5ForConditionalGeneration", "MarianMTModel", "BartForConditionalGeneration"])
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.filterwarnings("ignore:max_length")
def test_text_to_text(folders: Folders, name: str, task: str) -> None:
    folder, key = folders(name), f"{TASKS[task]}_text"
    options = {"max_new_tokens": 6, "num_beams": 2}

    def program(tf: Any, torch: Any) -> Any:
        if tf.__name__ == "transformers":
            one, two = ([{key: text}] for text in generated(tf, folder, [PROMPT, "A dog!"], **options))
            return [one, [*one, *two], two]
        pipe = tf.pipeline(task, model=folder, device=-1)
        texts = [PROMPT, "A dog!"]
        return [pipe(PROMPT, **options), pipe(texts, batch_size=2, **options), list(pipe(iter_of(texts), **options))[1]]

    both(program)


def iter_of(texts: list[str]) -> Any:
    yield from texts


def test_translation_by_the_task_of_the_config(folders: Folders) -> None:
    own = {"prefix": "the cat: ", "max_length": 7, "num_beams": 1}
    folder = folders("T5ForConditionalGeneration", task_specific_params={"translation_en_to_fr": own})

    def program(tf: Any, torch: Any) -> Any:
        if tf.__name__ == "transformers":
            texts = generated(tf, folder, [own["prefix"] + PROMPT], max_length=7, num_beams=1)  # type: ignore[operator]
            return [{"translation_text": text} for text in texts]
        return tf.pipeline("translation_en_to_fr", model=folder, device=-1)(PROMPT)

    both(program)


def test_several_texts_and_ids(folders: Folders) -> None:
    folder = folders("T5ForConditionalGeneration")
    options = {"max_new_tokens": 5, "num_beams": 2, "num_return_sequences": 2}

    def program(tf: Any, torch: Any) -> Any:
        if tf.__name__ == "transformers":
            return [{"generated_text": text} for text in generated(tf, folder, [PROMPT], **options)]
        pipe = tf.pipeline("text2text-generation", model=folder, device=-1)
        ids = [each["generated_token_ids"] for each in pipe(PROMPT, return_tensors=True, **options)]
        result = pipe(PROMPT, **options)
        assert [pipe.tokenizer.decode(row, skip_special_tokens=True) for row in ids] == [
            each["generated_text"] for each in result
        ]
        return result

    both(program)


def test_codes_of_languages_are_refused(folders: Folders) -> None:
    import tallow as tl

    pipe = tl.pipeline("translation", model=folders("MarianMTModel"))
    with pytest.raises(ArgumentError, match="src_lang"):
        pipe(PROMPT, src_lang="en", tgt_lang="fr")
