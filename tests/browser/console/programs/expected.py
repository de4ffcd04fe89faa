"""Write expected.json: the numbers that the programs of this folder print on PyTorch.

PYTHONPATH=$(scripts/fetch_packages.py --ecosystem) python tests/browser/console/programs/expected.py
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import runpy
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent


def main() -> None:
    """Run the command."""
    file = HERE / "expected.json"
    found = json.loads(file.read_text()) if file.exists() else {}
    with tempfile.TemporaryDirectory() as scratch, contextlib.chdir(scratch):
        for program in sorted(HERE.glob("run_*.py")):
            name = program.stem.removeprefix("run_")
            if len(sys.argv) > 1 and name not in sys.argv[1:]:
                continue
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                runpy.run_path(str(program))
            found[name] = json.loads(printed.getvalue().strip().splitlines()[-1])
            print(name, len(found[name]), flush=True)
            file.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    sys.path.insert(0, str(HERE))
    importlib.import_module("prelude")  # declares ops that transformers and diffusers look for
    main()
