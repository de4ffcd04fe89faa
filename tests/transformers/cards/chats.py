"""Cards of language models: chats, prompts, batches and streams."""

from __future__ import annotations

from threading import Thread
from typing import Any

from tests.transformers.cards.card import card

LONG = {"max_position_embeddings": 256}
QUESTION = [{"role": "user", "content": "Why does a cat sleep so long?"}]
TALK = [
    {"role": "system", "content": "You answer in one sentence."},
    {"role": "user", "content": "Who jumps over the dog?"},
    {"role": "assistant", "content": "The quick brown fox."},
    {"role": "user", "content": "And who sleeps?"},
]


@card("Qwen3ForCausalLM", head_dim=16)
def qwen3_with_thoughts(tf: Any, torch: Any, name: str) -> Any:
    tokenizer = tf.AutoTokenizer.from_pretrained(name)
    model = tf.AutoModelForCausalLM.from_pretrained(name, dtype="auto")
    text = tokenizer.apply_chat_template(QUESTION, tokenize=False, add_generation_prompt=True, enable_thinking=True)
    model_inputs = tokenizer([text], return_tensors="pt").to(model.device)
    generated_ids = model.generate(**model_inputs, max_new_tokens=12, do_sample=False)
    output_ids = generated_ids[0][len(model_inputs.input_ids[0]) :].tolist()
    end_of_thoughts = output_ids[5]
    try:
        index = len(output_ids) - output_ids[::-1].index(end_of_thoughts)
    except ValueError:
        index = 0
    print("thoughts:", tokenizer.decode(output_ids[:index], skip_special_tokens=True).strip("\n"))
    print("answer:", tokenizer.decode(output_ids[index:], skip_special_tokens=True).strip("\n"))
    return output_ids


@card("Qwen2ForCausalLM", **LONG)
def qwen2_answers_cut_from_their_prompts(tf: Any, torch: Any, name: str) -> Any:
    model = tf.AutoModelForCausalLM.from_pretrained(name, torch_dtype="auto")
    tokenizer = tf.AutoTokenizer.from_pretrained(name)
    text = tokenizer.apply_chat_template(TALK, tokenize=False, add_generation_prompt=True)
    model_inputs = tokenizer([text], return_tensors="pt").to(model.device)
    generated_ids = model.generate(**model_inputs, max_new_tokens=8, do_sample=False)
    generated_ids = [
        output_ids[len(input_ids) :]
        for input_ids, output_ids in zip(model_inputs.input_ids, generated_ids, strict=True)
    ]
    return tokenizer.batch_decode(generated_ids, skip_special_tokens=True)[0]


@card("LlamaForCausalLM", **LONG)
def llama_by_pipeline(tf: Any, torch: Any, name: str) -> Any:
    pipeline = tf.pipeline("text-generation", model=name, model_kwargs={"dtype": torch.float32}, device_map=None)
    outputs = pipeline(TALK, max_new_tokens=8, do_sample=False)
    print(outputs[0]["generated_text"][-1])
    return outputs


@card("LlamaForCausalLM", **LONG)
def llama_with_ends_of_turns(tf: Any, torch: Any, name: str) -> Any:
    tokenizer = tf.AutoTokenizer.from_pretrained(name)
    model = tf.LlamaForCausalLM.from_pretrained(name, dtype=torch.float32)
    input_ids = tokenizer.apply_chat_template(TALK, add_generation_prompt=True, return_tensors="pt", return_dict=False)
    terminators = [tokenizer.eos_token_id, tokenizer.convert_tokens_to_ids("e")]
    outputs = model.generate(input_ids, max_new_tokens=24, eos_token_id=terminators, do_sample=True, top_k=1)
    response = outputs[0][input_ids.shape[-1] :]
    print(tokenizer.decode(response, skip_special_tokens=True))
    return response


@card("MistralForCausalLM", sliding_window=7)
def mistral_streams_its_answer(tf: Any, torch: Any, name: str) -> Any:
    model = tf.AutoModelForCausalLM.from_pretrained(name)
    tokenizer = tf.AutoTokenizer.from_pretrained(name)
    encodeds = tokenizer.apply_chat_template(QUESTION, return_tensors="pt", add_generation_prompt=True)
    streamer = tf.TextStreamer(tokenizer, skip_prompt=True, skip_special_tokens=True)
    generated = model.generate(**encodeds.to("cpu"), max_new_tokens=10, do_sample=False, streamer=streamer)
    return tokenizer.batch_decode(generated)


@card("GemmaForCausalLM", head_dim=16)
def gemma_continues_a_text(tf: Any, torch: Any, name: str) -> Any:
    tokenizer = tf.AutoTokenizer.from_pretrained(name)
    model = tf.AutoModelForCausalLM.from_pretrained(name, device_map=None, dtype=torch.float32)
    input_ids = tokenizer("Write me a poem about a lazy dog.", return_tensors="pt").to("cpu")
    outputs = model.generate(**input_ids, max_new_tokens=10)
    print(tokenizer.decode(outputs[0]))
    return outputs


@card("Gemma2ForCausalLM", head_dim=16, sliding_window=7)
def gemma2_in_half_the_bits(tf: Any, torch: Any, name: str) -> Any:
    tokenizer = tf.AutoTokenizer.from_pretrained(name)
    model = tf.AutoModelForCausalLM.from_pretrained(name, dtype=torch.bfloat16)
    input_ids = tokenizer.apply_chat_template(QUESTION, return_tensors="pt", return_dict=True).to(model.device)
    outputs = model.generate(**input_ids, max_new_tokens=4, do_sample=False)
    return [str(model.dtype).rpartition(".")[2], tokenizer.decode(outputs[0])]


@card("Gemma3ForCausalLM", head_dim=16, sliding_window=7, **LONG)
def gemma3_of_a_chat_in_parts(tf: Any, torch: Any, name: str) -> Any:
    model = tf.Gemma3ForCausalLM.from_pretrained(name).eval()
    tokenizer = tf.AutoTokenizer.from_pretrained(name)
    inputs = tokenizer.apply_chat_template(
        [TALK, TALK], add_generation_prompt=True, tokenize=True, return_dict=True, return_tensors="pt"
    ).to(model.device)
    with torch.inference_mode():
        outputs = model.generate(**inputs, max_new_tokens=6, do_sample=False)
    return tokenizer.batch_decode(outputs)


@card("Phi3ForCausalLM", sliding_window=9, **LONG)
def phi3_with_a_dictionary_of_arguments(tf: Any, torch: Any, name: str) -> Any:
    torch.manual_seed(0)
    model = tf.AutoModelForCausalLM.from_pretrained(name, dtype="auto", attn_implementation="eager")
    tokenizer = tf.AutoTokenizer.from_pretrained(name)
    pipe = tf.pipeline("text-generation", model=model, tokenizer=tokenizer)
    generation_args = {"max_new_tokens": 8, "return_full_text": False, "do_sample": False}
    output = pipe(TALK, **generation_args)
    return output[0]["generated_text"]


@card("FalconForCausalLM")
def falcon_writes_several(tf: Any, torch: Any, name: str) -> Any:
    tokenizer = tf.AutoTokenizer.from_pretrained(name)
    pipeline = tf.pipeline("text-generation", model=name, tokenizer=tokenizer, dtype=torch.float32)
    sequences = pipeline(
        "A dog met a fox.\nDog: Hello, fox!\nFox:",
        max_new_tokens=8,
        do_sample=True,
        top_k=1,
        num_return_sequences=2,
        eos_token_id=tokenizer.eos_token_id,
    )
    for seq in sequences:
        print(f"Result: {seq['generated_text']}")
    return sequences


@card("GPT2LMHeadModel")
def gpt2_by_pipeline_with_a_seed(tf: Any, torch: Any, name: str) -> Any:
    generator = tf.pipeline("text-generation", model=name)
    tf.set_seed(42)
    return generator("Hello, I'm a lazy dog,", max_new_tokens=10, num_return_sequences=2, num_beams=3, do_sample=False)


@card("GPT2Model")
def gpt2_features(tf: Any, torch: Any, name: str) -> Any:
    tokenizer = tf.GPT2Tokenizer.from_pretrained(name)
    model = tf.GPT2Model.from_pretrained(name)
    encoded_input = tokenizer("Replace me by any text you'd like.", return_tensors="pt")
    output = model(**encoded_input)
    return output.last_hidden_state


@card("GPT2LMHeadModel")
def gpt2_perplexity(tf: Any, torch: Any, name: str) -> Any:
    model = tf.GPT2LMHeadModel.from_pretrained(name)
    tokenizer = tf.GPT2TokenizerFast.from_pretrained(name)
    encodings = tokenizer("\n\n".join(["A cat sleeps on the sofa.", "The dog is lazy."]), return_tensors="pt")
    length, stride, end, nlls = encodings.input_ids.size(1), 6, 0, []
    for begin in range(0, length, stride):
        last, end = end, min(begin + 12, length)
        input_ids = encodings.input_ids[:, begin:end]
        target_ids = input_ids.clone()
        target_ids[:, : -(end - last)] = -100
        with torch.no_grad():
            nlls.append(model(input_ids, labels=target_ids).loss)
        if end == length:
            break
    return torch.exp(torch.stack(nlls).mean()).item()


@card("Qwen2ForCausalLM")
def qwen2_batch_padded_left(tf: Any, torch: Any, name: str) -> Any:
    tokenizer = tf.AutoTokenizer.from_pretrained(name, padding_side="left")
    model = tf.AutoModelForCausalLM.from_pretrained(name)
    prompts = ["The fox", "A kitten naps in the sun, and", "Is it the dog's fault?"]
    inputs = tokenizer(prompts, padding=True, return_tensors="pt")
    outputs = model.generate(**inputs, max_new_tokens=6, do_sample=False)
    return tokenizer.batch_decode(outputs[:, inputs["input_ids"].shape[1] :], skip_special_tokens=True)


@card("Qwen3MoeForCausalLM", head_dim=16)
def qwen3_moe_with_a_generation_config(tf: Any, torch: Any, name: str) -> Any:
    tokenizer = tf.AutoTokenizer.from_pretrained(name)
    model = tf.Qwen3MoeForCausalLM.from_pretrained(name)
    config = tf.GenerationConfig(max_new_tokens=16, repetition_penalty=1.2, no_repeat_ngram_size=3)
    inputs = tokenizer("The quick brown fox", return_tensors="pt")
    outputs = model.generate(**inputs, generation_config=config, stop_strings=["e", "o"], tokenizer=tokenizer)
    return tokenizer.decode(outputs[0])


@card("OlmoeForCausalLM")
def olmoe_next_words(tf: Any, torch: Any, name: str) -> Any:
    model = tf.OlmoeForCausalLM.from_pretrained(name)
    tokenizer = tf.AutoTokenizer.from_pretrained(name)
    inputs = tokenizer("A cat sleeps on", return_tensors="pt")
    with torch.no_grad():
        probabilities = torch.softmax(model(**inputs).logits[0, -1], dim=-1)
    values, indices = torch.topk(probabilities, 5)
    return [(tokenizer.decode(index), value.item()) for value, index in zip(values, indices, strict=True)]


@card("LlamaForCausalLM")
def llama_with_an_assistant(tf: Any, torch: Any, name: str) -> Any:
    tokenizer = tf.AutoTokenizer.from_pretrained(name)
    inputs = tokenizer("The lazy dog", return_tensors="pt")
    model = tf.AutoModelForCausalLM.from_pretrained(name)
    assistant_model = tf.AutoModelForCausalLM.from_pretrained(name)
    outputs = model.generate(**inputs, assistant_model=assistant_model, max_new_tokens=8, do_sample=False)
    return tokenizer.batch_decode(outputs, skip_special_tokens=True)


@card("MixtralForCausalLM", sliding_window=7)
def mixtral_streams_to_another_thread(tf: Any, torch: Any, name: str) -> Any:
    tokenizer = tf.AutoTokenizer.from_pretrained(name)
    model = tf.AutoModelForCausalLM.from_pretrained(name)
    streamer = tf.TextIteratorStreamer(tokenizer, skip_prompt=True, timeout=30.0)
    inputs = tokenizer("It isn't", return_tensors="pt")
    thread = Thread(target=model.generate, kwargs={**inputs, "streamer": streamer, "max_new_tokens": 8})
    thread.start()
    generated = ""
    for new_text in streamer:
        generated += new_text
    thread.join()
    return generated


@card("LlamaForCausalLM")
def llama_in_eight_bits(tf: Any, torch: Any, name: str) -> Any:
    """The settings are those of transformers; the weights need bitsandbytes there, so they are left as they are."""
    quantization_config = tf.BitsAndBytesConfig(load_in_8bit=True, llm_int8_threshold=6.0)
    is_real = tf.__name__ == "transformers"
    options = {} if is_real else {"quantization_config": quantization_config}
    model = tf.AutoModelForCausalLM.from_pretrained(name, **options)
    tokenizer = tf.AutoTokenizer.from_pretrained(name)
    inputs = tokenizer("A quick test of", return_tensors="pt")
    settings = quantization_config.to_dict()
    kept = [settings[key] for key in ("load_in_8bit", "load_in_4bit", "llm_int8_threshold")]
    kept.append(settings["quant_method"] == "bitsandbytes")
    return [kept, tokenizer.decode(model.generate(**inputs, max_new_tokens=3)[0])]
