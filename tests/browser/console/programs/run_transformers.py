"""`BertModel` with gradients, `pipeline("fill-mask")`."""

from pathlib import Path

import torch
from prelude import filled, show, trained
from transformers import BertConfig, BertForMaskedLM, BertModel, BertTokenizerFast, pipeline

words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "sat", "##s", "on", "mat", "."]
text = "The cats sat on the [MASK]."
sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
config = BertConfig(vocab_size=len(words), max_position_embeddings=32, **sizes)
filled(BertForMaskedLM(config)).save_pretrained("bert")
Path("bert/vocab.txt").write_text("\n".join(words))
BertTokenizerFast("bert/vocab.txt").save_pretrained("bert")
model = BertModel.from_pretrained("bert").eval()
inputs = BertTokenizerFast.from_pretrained("bert")(text, return_tensors="pt")
with torch.no_grad():
    found = pipeline("fill-mask", model="bert")(text)
show(*trained(model, model(**inputs).last_hidden_state), *(each["score"] for each in found))
