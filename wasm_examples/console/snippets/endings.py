# Several endings of one sentence, drawn at random.
from transformers import pipeline, set_seed

set_seed(42)
pipe = pipeline("text-generation")
for text in pipe("Lily was sad because", max_new_tokens=12, num_return_sequences=3, temperature=0.9):
    print(text["generated_text"])
