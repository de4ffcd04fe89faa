"""The build of tallow-torch: it stops where PyTorch is installed, and adds metadata of a distribution `torch`."""

from __future__ import annotations

import re
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

VERSION_FILE = "package/tallow/compat/version.py"


class Hook(BuildHookInterface):  # type: ignore[type-arg]
    """Called by hatchling before it packs the wheel."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Refuse to replace PyTorch. Without .dist-info, of which a wheel has one, pip finds `torch` by .egg-info."""
        if version == "editable":
            raise RuntimeError("tallow-torch cannot be installed in editable mode: omit -e")
        for kind in ("purelib", "platlib"):  # of the environment, also when pip builds in an isolated one
            if (Path(sysconfig.get_path(kind)) / "torch" / "version.py").exists():
                raise RuntimeError(
                    f"PyTorch is installed in {sysconfig.get_path(kind)}, and tallow-torch would overwrite it. "
                    "Use tallow.compat.install_torch() there, or uninstall torch first."
                )
        source = (Path(self.root).parents[1] / VERSION_FILE).read_text(encoding="utf-8")
        (release,) = re.findall(r'^PYTORCH = "(.+)"', source, re.MULTILINE)
        info = Path(self.directory) / "PKG-INFO"
        info.parent.mkdir(parents=True, exist_ok=True)
        info.write_text(f"Metadata-Version: 1.1\nName: torch\nVersion: {release}\n", encoding="utf-8")
        build_data["force_include"][str(info)] = f"torch-{release}.egg-info/PKG-INFO"
