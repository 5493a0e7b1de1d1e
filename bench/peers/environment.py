"""The Python that has PyTorch, and DALI where it is asked for: a virtual environment that only the bench makes and uses."""

import hashlib
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".cache" / "bench-venv"


class Failed(Exception):
    """The environment could not be made."""


class Part:
    """Packages that are installed together, when they are first needed."""

    def __init__(self, what, requirements, disk_gb):
        self.what = what
        self.disk_gb = disk_gb
        self.requirements = ROOT / "bench" / requirements
        self.stamp = FOLDER / self.requirements.with_suffix(".sha256").name

    def wanted(self):
        return hashlib.sha256(self.requirements.read_bytes()).hexdigest()

    def installed(self):
        return self.stamp.exists() and self.stamp.read_text() == self.wanted()

    def megabytes(self):
        return sum(float(size) for size in re.findall(r"# ([\d.]+) MB$", self.requirements.read_text(), re.MULTILINE))

    def install(self, interpreter):
        print(
            f"bench: {self.what}, to compare with, into {FOLDER.relative_to(ROOT)}: {self.megabytes() / 1e3:.1f} GB to "
            f"download from PyPI (less what pip's cache has), {self.disk_gb} GB on disk; once",
            file=sys.stderr,
        )
        install = ["-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes", "--disable-pip-version-check"]
        subprocess.run([interpreter, *install, "-r", self.requirements], check=True)
        self.stamp.write_text(self.wanted())


PYTORCH = Part("PyTorch", "requirements.txt", 3.5)
DALI = Part("NVIDIA DALI", "requirements-dali.txt", 0.6)
SAFETENSORS = Part("safetensors", "requirements-safetensors.txt", 0.002)
ONNX_RUNTIME = Part("ONNX Runtime", "requirements-onnxruntime.txt", 0.12)
TENSORBOARD = Part("TensorBoard", "requirements-tensorboard.txt", 0.02)
PADDLE = Part("Paddle", "requirements-paddle.txt", 0.7)


def python_that_computes_on(device):
    """The first interpreter whose PyTorch can use the device, "cuda" or "cpu"; None if there is none. Nothing is installed.

    LOCKSTEP_BENCH_PYTHON's alone if that is set, else that of `./run setup cuda`, `python3`, or the bench's own.
    """
    override = os.environ.get("LOCKSTEP_BENCH_PYTHON")
    ours = [ROOT / ".venv" / "bin" / "python", "python3", FOLDER / "bin" / "python"]
    test = f"import torch; torch.ones(1, device='{device}')"
    for interpreter in map(str, [override] if override else ours):
        try:
            if subprocess.run([interpreter, "-c", test], capture_output=True, timeout=120).returncode == 0:
                return interpreter
        except (OSError, subprocess.TimeoutExpired):
            continue
    return None


def python(*more):
    """The path of the interpreter, which has PyTorch and the parts `more`; makes what is missing or has changed.

    LOCKSTEP_BENCH_PYTHON names another interpreter, which must have all of them already.
    """
    override = os.environ.get("LOCKSTEP_BENCH_PYTHON")
    if override:
        return override
    interpreter = FOLDER / "bin" / "python"
    try:
        if not (interpreter.exists() and PYTORCH.installed()):
            # The interpreter that ./run setup chose for libtorch's wheel is the one that PyTorch's wheel, the same, is for.
            subprocess.run([ROOT / ".venv" / "bin" / "python", "-m", "venv", "--clear", FOLDER], check=True)
            PYTORCH.install(interpreter)
        for part in more:
            if not part.installed():
                part.install(interpreter)
    except (OSError, subprocess.CalledProcessError) as error:
        raise Failed(f"{FOLDER}: can't be made: {error}; ./run setup makes what it needs") from None
    return str(interpreter)
