"""Run in each of several processes: every check of the modules named on the command line, in the same order."""

from __future__ import annotations

import importlib
import inspect
import sys
from datetime import timedelta
from pathlib import Path

import tallow.distributed as dist

folder = Path(sys.argv[1])
dist.init_process_group(timeout=timedelta(minutes=2))
for name in sys.argv[2:]:
    module = importlib.import_module(f"checks.{name}")
    for check_name, check in inspect.getmembers(module, inspect.isfunction):
        if check_name.startswith("check_"):
            check(folder)
            dist.barrier()
            if dist.get_rank() == 0:
                print("ok", name, check_name, flush=True)
dist.destroy_process_group()
