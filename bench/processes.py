"""Runs the programs that are measured, and looks at them from outside while they run."""

import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
LOCKSTEP = pathlib.Path(os.environ.get("LOCKSTEP_BIN", ROOT / "build" / "release" / "bin")) / "lockstep"
PEER = ROOT / "bench" / "peers" / "models_ddp.py"
RANKS = 2
TIMEOUT = 300  # seconds that one run may take
POLL = 0.005  # seconds: as fine as the start-up figure is


class Failed(Exception):
    """A measured program failed; says which, and how."""


class TooLong(Failed):
    """It was not done in its time."""


def last_json_line(command, environment=None, timeout=TIMEOUT):
    """Of the command's standard output. Its processes are gone when this returns, whatever happened."""
    text = " ".join(map(str, command))
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(command, env=environment, start_new_session=True, **pipes)
    try:
        output, errors = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        raise TooLong(f"{text}: not done after {timeout:.0f} s") from None
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    lines = output.splitlines()
    if process.returncode != 0 or not lines:
        raise Failed(f"{text}: exit code {process.returncode}\n{errors[-2000:]}")
    return json.loads(lines[-1])


def our_step(flags, ranks=RANKS, timeout=TIMEOUT, threads=1):
    world = ["--nproc", str(ranks), "--threads", str(threads), "--json"]
    return last_json_line([LOCKSTEP, "bench", "step", *flags, *world], timeout=timeout)


def peer(python, flags, ranks=RANKS, timeout=TIMEOUT):
    """The JSON line of models_ddp.py, under torchrun if there are several ranks, and `first_step_seconds` from the command."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    torchrun = [python, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(ranks)]
    if ranks == 1:  # torchrun would only take time
        torchrun = [python]
        environment |= {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}
    start = time.monotonic_ns()
    result = last_json_line([*torchrun, PEER, *flags], environment, timeout)
    result["first_step_seconds"] = (result["first_step_ns"] - start) * 1e-9
    return result


def our_checkpoint(field, *flags):
    return last_json_line([LOCKSTEP, "bench", "checkpoint", "--json", *flags])[field]


def peer_checkpoint(python, field, *flags):
    return last_json_line([python, PEER.parent / "torch_checkpoint.py", *flags])[field]


class TrainingRun:
    """`lockstep train mnist` on data made on the spot, stopped when it has been looked at."""

    def __init__(self, flags=()):
        self._folder = tempfile.TemporaryDirectory(prefix="lockstep-bench-")
        out = pathlib.Path(self._folder.name) / "run"
        self._metrics = out / "metrics.jsonl"
        command = [LOCKSTEP, "train", "mnist", "--out", out, "--nproc", str(RANKS), "--threads", "1", "--quiet", *flags]
        self._start = time.monotonic()
        self._front = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._front.send_signal(signal.SIGTERM)
        try:
            self._front.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            self._front.kill()
            self._front.communicate()
        self._folder.cleanup()

    def seconds_until_step(self, step):
        """Waits until the run's metrics have this step; seconds since the command."""
        while True:
            now = time.monotonic() - self._start
            if self._steps() >= step:
                return now
            if self._front.poll() is not None or now > TIMEOUT:
                raise Failed(f"lockstep train mnist: no step {step} after {now:.0f} s\n{self._front.stderr.read()}")
            time.sleep(POLL)

    def resident_mb(self):
        """(RSS, PSS) of the rank that has the most; PSS shares the pages that several processes map among them."""
        return max(resident_mb(pid) for pid in self._workers())

    def _steps(self):
        try:
            return self._metrics.read_bytes().count(b'"kind":"train"')
        except FileNotFoundError:
            return 0

    def _workers(self):
        tasks = pathlib.Path(f"/proc/{self._front.pid}/task").glob("*/children")
        children = [pid for task in tasks for pid in task.read_text().split()]
        workers = [pid for pid in children if "worker" in pathlib.Path(f"/proc/{pid}/cmdline").read_text()]
        if len(workers) != RANKS:
            raise Failed(f"lockstep train mnist: {len(workers)} workers found, not {RANKS}")
        return workers


def resident_mb(pid):
    lines = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    fields = {line.split()[0]: line.split()[1] for line in lines if "kB" in line}
    return int(fields["Rss:"]) * 1024 / 1e6, int(fields["Pss:"]) * 1024 / 1e6
