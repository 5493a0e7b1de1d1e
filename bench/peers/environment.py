"""The Python that has PyTorch: a virtual environment that only the bench makes and uses."""

import hashlib
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
REQUIREMENTS = ROOT / "bench" / "requirements.txt"
FOLDER = ROOT / ".cache" / "bench-venv"
DISK_GB = 3.5


class Failed(Exception):
    """The environment could not be made."""


def python():
    """The path of its interpreter; makes the environment where it is missing or its requirements have changed.

    LOCKSTEP_BENCH_PYTHON names another interpreter, which must have PyTorch already.
    """
    override = os.environ.get("LOCKSTEP_BENCH_PYTHON")
    if override:
        return override
    interpreter = FOLDER / "bin" / "python"
    stamp = FOLDER / "requirements.sha256"
    wanted = hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()
    if not (interpreter.exists() and stamp.exists() and stamp.read_text() == wanted):
        make(interpreter)
        stamp.write_text(wanted)
    return str(interpreter)


def make(interpreter):
    megabytes = sum(float(size) for size in re.findall(r"# ([\d.]+) MB$", REQUIREMENTS.read_text(), re.MULTILINE))
    print(
        f"bench: PyTorch, to compare with, into {FOLDER.relative_to(ROOT)}: {megabytes / 1e3:.1f} GB to download "
        f"from PyPI (less what pip's cache has), {DISK_GB} GB on disk; once",
        file=sys.stderr,
    )
    # The interpreter that ./run setup chose for libtorch's wheel is the one that PyTorch's wheel, the same, is for.
    install = ["-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes", "--disable-pip-version-check"]
    try:
        subprocess.run([ROOT / ".venv" / "bin" / "python", "-m", "venv", "--clear", FOLDER], check=True)
        subprocess.run([interpreter, *install, "-r", REQUIREMENTS], check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise Failed(f"{FOLDER}: can't be made: {error}; ./run setup makes what it needs") from None
