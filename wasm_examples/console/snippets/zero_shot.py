# Sort a text by labels of one's choice. The page's model compares the meanings of words.
from transformers import pipeline

classifier = pipeline("zero-shot-classification")
classifier("The orchestra played a symphony.", candidate_labels=["music", "cooking", "medicine"])
