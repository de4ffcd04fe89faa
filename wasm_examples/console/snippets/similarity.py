# Compare sentences by their vectors.
import torch
from transformers import pipeline

extractor = pipeline("feature-extraction")
texts = ["A kitten naps.", "a young cat that is asleep", "The bank raises interest."]
vectors = torch.cat([extractor(text, return_tensors=True).mean(dim=1) for text in texts])
vectors = torch.nn.functional.normalize(vectors)
vectors @ vectors.T
