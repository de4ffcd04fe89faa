"""`python -m tallow`: the command `tallow`."""

import sys

from tallow_command import main

sys.exit(main())
