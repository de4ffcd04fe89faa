# Show a text while the model writes it.
from transformers import TextStreamer, pipeline

pipe = pipeline("text-generation")
streamer = TextStreamer(pipe.tokenizer, skip_prompt=True)
_ = pipe("The little dog", max_new_tokens=80, streamer=streamer)
