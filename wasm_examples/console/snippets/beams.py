# Search for the likeliest continuations with beams.
from transformers import pipeline

pipe = pipeline("text-generation")
tokenizer, model = pipe.tokenizer, pipe.model
inputs = tokenizer("One day, a girl named Lucy", return_tensors="pt")
out = model.generate(**inputs, max_new_tokens=16, num_beams=4, num_return_sequences=2, do_sample=False)
print("\n".join(tokenizer.batch_decode(out, skip_special_tokens=True)))
