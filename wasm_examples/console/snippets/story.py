# Write a story. A task without a model takes a small one of the page.
from transformers import pipeline

pipe = pipeline("text-generation")
pipe("Once upon a time", max_new_tokens=60)
