"""The Tensor class and the path from a call to the array code: arguments, dispatch, public names, printing."""
