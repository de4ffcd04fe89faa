"""Run the command `tallow` as `python -m tallow`."""

import sys

from tallow_command import main

sys.exit(main())
