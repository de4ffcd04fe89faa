"""`python -m tallow`: the command `tallow`."""

import sys

from tallow.cli import main

sys.exit(main())
