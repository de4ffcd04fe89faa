"""Callbacks under their Keras names."""

from tallow.keras.callbacks.backup_and_restore import BackupAndRestore
from tallow.keras.callbacks.callback import Callback, CallbackList
from tallow.keras.callbacks.csv_logger import CSVLogger
from tallow.keras.callbacks.early_stopping import EarlyStopping
from tallow.keras.callbacks.history import History
from tallow.keras.callbacks.lambda_callback import LambdaCallback
from tallow.keras.callbacks.learning_rate import LearningRateScheduler, ReduceLROnPlateau
from tallow.keras.callbacks.model_checkpoint import ModelCheckpoint
from tallow.keras.callbacks.progbar_logger import ProgbarLogger
from tallow.keras.callbacks.swap_ema_weights import SwapEMAWeights
from tallow.keras.callbacks.tensorboard import TensorBoard
from tallow.keras.callbacks.terminate_on_nan import TerminateOnNaN
from tallow.lazy_names import names_of

__all__ = [
    "BackupAndRestore",
    "CSVLogger",
    "Callback",
    "CallbackList",
    "EarlyStopping",
    "History",
    "LambdaCallback",
    "LearningRateScheduler",
    "ModelCheckpoint",
    "ProgbarLogger",
    "ReduceLROnPlateau",
    "SwapEMAWeights",
    "TensorBoard",
    "TerminateOnNaN",
]

__getattr__, __dir__ = names_of(__name__)
