"""Callbacks under Keras's names: what is done while a model trains. See `callback` for what they share."""

from tallow.keras.callbacks.callback import Callback, CallbackList
from tallow.keras.callbacks.history import History
from tallow.keras.callbacks.progbar_logger import ProgbarLogger

__all__ = ["Callback", "CallbackList", "History", "ProgbarLogger"]
