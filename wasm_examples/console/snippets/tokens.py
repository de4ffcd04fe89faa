# From text to tokens, and back.
from transformers import pipeline

tokenizer = pipeline("text-generation").tokenizer
encoded = tokenizer(["Hello there!", "The cat sleeps."])
for ids in encoded["input_ids"]:
    print(ids, tokenizer.convert_ids_to_tokens(ids))
tokenizer.decode(encoded["input_ids"][1], skip_special_tokens=True)
