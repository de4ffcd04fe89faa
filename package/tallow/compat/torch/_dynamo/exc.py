"""torch._dynamo.exc: errors of PyTorch's compiler. None is raised here."""


class TorchDynamoException(RuntimeError):
    """An error of the compiler."""


class Unsupported(TorchDynamoException):
    """A function that the compiler cannot take."""


class BackendCompilerFailed(TorchDynamoException):
    """A backend that failed."""


class UserError(Unsupported):
    """A function that no compiler can take."""


class TorchRuntimeError(TorchDynamoException):
    """An op that failed while the function was traced."""


class TensorifyScalarRestartAnalysis(Exception):
    """A signal to begin again."""
