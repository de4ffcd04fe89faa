# The likeliest next tokens, from the logits of the model.
import torch
from transformers import pipeline

pipe = pipeline("text-generation")
inputs = pipe.tokenizer("The cat sat on the", return_tensors="pt")
with torch.no_grad():
    logits = pipe.model(**inputs).logits
values, ids = logits[0, -1].softmax(dim=-1).topk(5)
for value, token in zip(values, ids, strict=True):
    print(f"{value:.3f}  {pipe.tokenizer.decode(token)}")
