"""The error of a program that imports a package for PyTorch, such as torchvision, that is not installed."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder

from tallow.errors import MissingModuleError

PREFIXES = ("torch", "pytorch")  # of the names of packages that are written for PyTorch
INSTEAD = {
    "torchvision": "; tallow.data has MNIST, FashionMNIST and CIFAR10",
    "torchaudio": "; tallow.audio reads sounds",
    "torchtext": "; it has ended: use tallow.text, or the package tokenizers",
}


class UninstalledFinder(MetaPathFinder):
    """The last finder: an import says how to install the package without PyTorch. A search for it finds nothing."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: object = None) -> None:
        """Return None to who asks whether there is a package.

        Raises:  MissingModuleError for an import of a package for PyTorch
        """
        root = fullname.partition(".")[0]
        asks = sys._getframe(2).f_code.co_name  # of importlib: `find_spec` looks whether there is a package
        if fullname == root and root.startswith(PREFIXES) and asks == "_find_and_load_unlocked":
            error = MissingModuleError(
                f"No module named {root!r}",
                hint=f"pip install --no-deps {root.replace('_', '-')} installs it without PyTorch"
                f"{INSTEAD.get(root, '')}",
            )
            error.name = root
            raise error
