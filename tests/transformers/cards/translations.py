"""Cards of encoders with decoders: T5, BART and Marian."""

from __future__ import annotations

from typing import Any

from tests.transformers.cards.card import card

ARTICLE = "A cat sleeps on the sofa. A kitten naps in the sun, and we've seen 1,234 of them in 2024!"


@card("T5ForConditionalGeneration")
def t5_translates(tf: Any, torch: Any, name: str) -> Any:
    tokenizer = tf.AutoTokenizer.from_pretrained(name)
    model = tf.T5ForConditionalGeneration.from_pretrained(name, device_map=None)
    input_ids = tokenizer("translate English to German: the dog is lazy", return_tensors="pt").input_ids.to("cpu")
    outputs = model.generate(input_ids, max_new_tokens=10)
    print(tokenizer.decode(outputs[0]))
    return outputs


@card("T5ForConditionalGeneration", feed_forward_proj="gated-gelu", tie_word_embeddings=False)
def flan_t5_answers_a_batch(tf: Any, torch: Any, name: str) -> Any:
    model = tf.AutoModelForSeq2SeqLM.from_pretrained(name)
    tokenizer = tf.AutoTokenizer.from_pretrained(name)
    inputs = tokenizer(["Is it a dog?", "summarize: " + ARTICLE], padding=True, truncation=True, return_tensors="pt")
    outputs = model.generate(**inputs, num_beams=2, min_new_tokens=4, max_new_tokens=8, length_penalty=0.8)
    return tokenizer.batch_decode(outputs, skip_special_tokens=True)


@card("T5ForConditionalGeneration", dropout_rate=0.0)
def t5_loss_of_a_span(tf: Any, torch: Any, name: str) -> Any:
    tokenizer = tf.AutoTokenizer.from_pretrained(name)
    model = tf.T5ForConditionalGeneration.from_pretrained(name)
    input_ids = tokenizer("The quick fox jumps", return_tensors="pt").input_ids
    labels = tokenizer("brown", return_tensors="pt").input_ids
    outputs = model(input_ids=input_ids, labels=labels)
    return [outputs.loss, outputs.logits]


@card("T5EncoderModel")
def t5_encodes(tf: Any, torch: Any, name: str) -> Any:
    tokenizer = tf.AutoTokenizer.from_pretrained(name)
    model = tf.T5EncoderModel.from_pretrained(name)
    enc = tokenizer("Dogs have been studied in the park", return_tensors="pt")
    output = model(input_ids=enc["input_ids"], attention_mask=enc["attention_mask"], return_dict=True)
    return output.last_hidden_state


@card("BartForConditionalGeneration")
def bart_summarizes(tf: Any, torch: Any, name: str) -> Any:
    model = tf.BartForConditionalGeneration.from_pretrained(name)
    tokenizer = tf.AutoTokenizer.from_pretrained(name)
    inputs = tokenizer([ARTICLE], max_length=24, truncation=True, return_tensors="pt")
    summary_ids = model.generate(inputs["input_ids"], num_beams=4, min_length=3, max_length=12, early_stopping=True)
    return tokenizer.batch_decode(summary_ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)


@card("BartModel")
def bart_features(tf: Any, torch: Any, name: str) -> Any:
    tokenizer = tf.AutoTokenizer.from_pretrained(name)
    model = tf.BartModel.from_pretrained(name)
    inputs = tokenizer("Hello, my dog is lazy", return_tensors="pt")
    return model(**inputs).last_hidden_state


@card("MarianMTModel")
def marian_translates(tf: Any, torch: Any, name: str) -> Any:
    src_text = ["The dog is lazy.", "A cat sleeps on the sofa."]
    tokenizer = tf.AutoTokenizer.from_pretrained(name)
    model = tf.MarianMTModel.from_pretrained(name)
    translated = model.generate(**tokenizer(src_text, return_tensors="pt", padding=True), max_new_tokens=8)
    return [tokenizer.decode(t, skip_special_tokens=True) for t in translated]
