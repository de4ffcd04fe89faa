"""Run the tests of the kernels with the libraries for aarch64, on an emulator of such a processor.

    scripts/check aarch64 [ARGUMENTS]      arguments go to pytest, such as -k quantized

QEMU runs Debian's Python for arm64 and NumPy's wheel, which are unpacked into a folder beside the test environments
and installed nowhere. Each of the two libraries is tested: the one for all processors, and the one for those with the
dot product of int8. Needs Debian or Ubuntu, and QEMU: apt-get install qemu-user.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import build_kernels  # noqa: E402
from support.paths import cache_dir  # noqa: E402

PACKAGES = ("python3", "libstdc++6")  # and what they depend on
WHEELS = ("numpy", "pytest", "hypothesis")
PLATFORMS = ("manylinux2014_aarch64", "manylinux_2_27_aarch64", "manylinux_2_28_aarch64")


def main() -> int:
    """Prepare Python for aarch64, build the libraries, and run the tests with each; return 1 if any fail."""
    qemu = shutil.which("qemu-aarch64") or shutil.which("qemu-aarch64-static")
    if qemu is None or shutil.which("apt-get") is None:
        sys.exit("aarch64: needs Debian or Ubuntu, and QEMU: apt-get install qemu-user")
    system = prepared_system()
    failed = 0
    with tempfile.TemporaryDirectory() as made:
        files = build_kernels.build(Path(made), ["aarch64-linux"])
        for count in range(1, len(files) + 1):  # the loader takes the best of those that exist
            folder = Path(made, files[count - 1].stem)
            folder.mkdir()
            for file in files[:count]:
                shutil.copy(file, folder)
            tests = [ROOT / "scripts/kernel_tests.py", folder, "tests", *sys.argv[1:]]
            command = [qemu, "-L", system, system / "usr/bin/python3", *tests]
            environment = os.environ | {"PYTHONPATH": str(system / "wheels"), "OMP_NUM_THREADS": "1"}
            failed |= subprocess.run(command, cwd=ROOT, env=environment).returncode != 0
    return failed


def prepared_system() -> Path:
    """Return a folder with the files of Python and of the wheels for aarch64; download them once."""
    system = cache_dir() / "aarch64-system"
    if not system.exists():
        partial = system.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        unpack_packages(partial)
        version = (partial / "usr/bin/python3").readlink().name.removeprefix("python")
        platforms = [f"--platform={name}" for name in PLATFORMS]
        options = [
            "-q",
            "--no-warn-conflicts",
            "--only-binary=:all:",
            f"--python-version={version}",
            "--target",
            partial / "wheels",
        ]
        subprocess.run([sys.executable, "-m", "pip", "install", *platforms, *options, *WHEELS], check=True)
        partial.rename(system)
    return system


def unpack_packages(system: Path) -> None:
    """Download Debian's packages for arm64 and unpack them, with lists of packages of their own."""
    with tempfile.TemporaryDirectory() as apt:
        for folder in (system, f"{apt}/lists/partial", f"{apt}/archives/partial"):
            Path(folder).mkdir(parents=True)
        Path(apt, "status").touch()  # nothing is installed
        settings = {"APT::Architecture": "arm64", "APT::Architectures": "arm64", "APT::Sandbox::User": "root"}
        settings |= {"Dir::State": apt, "Dir::State::status": f"{apt}/status", "Dir::Cache": apt}
        get = ["apt-get", "-qq", *(f"-o{name}={value}" for name, value in settings.items())]
        subprocess.run([*get, "update"], check=True)
        subprocess.run([*get, "install", "--yes", "--no-install-recommends", "--download-only", *PACKAGES], check=True)
        for package in sorted(Path(apt, "archives").glob("*.deb")):
            subprocess.run(["dpkg-deb", "-x", package, system], check=True)
    if not (system / "lib").exists():  # where the loader of programs is looked for
        (system / "lib").symlink_to("usr/lib")


if __name__ == "__main__":
    sys.exit(main())
