"""Run PyTorch code unchanged: `import torch` gives tallow, natively and in a browser.

    import tallow.compat
    tallow.compat.install_torch()

    import torch                      # tallow from here on
    import torch.nn.functional as F

`python -m tallow.compat train.py --epochs 3` does the same for an unmodified script.
"""

from tallow.compat.stand_in import install_torch, uninstall_torch
from tallow.lazy_names import names_of

__all__ = ["install_torch", "uninstall_torch"]

__getattr__, __dir__ = names_of(__name__)
