"""tallow in the place of PyTorch: importing this module replaces it by the stand-in of `tallow.compat`."""

import importlib
import sys

from tallow.compat import install_torch

del sys.modules[__name__]
install_torch()
importlib.import_module(__name__)
