"""A server's engine: texts of many requests through one model, a token of each at a time.

    engine = TextEngine(TextModel("stories", model, words), slots=8)
    engine.start()
    generation = engine.submit(TextRequest(tokens, max_tokens=100), deliver=print)  # an Update for each token
    generation.cancel()
    engine.stop()

`tallow.serving.http` answers HTTP requests with it; `tallow serve` runs that.
"""

from tallow.lazy_names import names_of
from tallow.serving.encoding import EncoderWorker, Rows
from tallow.serving.engine import TextEngine
from tallow.serving.queue import Busy, Closed, WaitingLine
from tallow.serving.requests import Generation, TextRequest, Update
from tallow.serving.speech import SpeechWorker
from tallow.serving.text_model import TextModel

__all__ = [
    "Busy",
    "Closed",
    "EncoderWorker",
    "Generation",
    "Rows",
    "SpeechWorker",
    "TextEngine",
    "TextModel",
    "TextRequest",
    "Update",
    "WaitingLine",
]

__getattr__, __dir__ = names_of(__name__)
