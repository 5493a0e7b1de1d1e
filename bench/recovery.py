"""From the kill of a rank to the end of the next step, of runs that start anew by themselves."""

import contextlib
import json
import os
import pathlib
import random
import signal
import subprocess
import tempfile
import time

from processes import LOCKSTEP, POLL, RANKS, TIMEOUT, Failed, TooLong

EVERY = 50  # steps between two snapshots
LEAST = 60  # steps before the kill
MEETING = 60  # seconds that ranks may take to meet again


class Run:
    """A training that writes a line of JSON with `time` (seconds since 1970) and `seconds` after each step."""

    def __init__(self, command, steps):
        self._steps = steps
        self._command = command
        pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
        self._launcher = subprocess.Popen(command, start_new_session=True, **pipes)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        workers = self.workers()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._launcher.pid, signal.SIGKILL)
        for pid in workers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._launcher.communicate()

    def records(self):
        try:
            lines = self._steps.read_text().splitlines()
        except FileNotFoundError:
            return []
        records = []
        for line in lines:
            try:
                records.append(json.loads(line))
            except json.JSONDecodeError:  # it is being written
                continue
        return [record for record in records if record["kind"] == "train"]

    def workers(self):
        """The launcher's children that train."""
        found = []
        for task in pathlib.Path(f"/proc/{self._launcher.pid}/task").glob("*/children"):
            for pid in task.read_text().split():
                try:
                    if "lockstep-worker" in pathlib.Path(f"/proc/{pid}/cmdline").read_text():
                        found.append(int(pid))
                except (FileNotFoundError, ProcessLookupError):
                    continue
        return found

    def wait_for(self, what, condition, timeout=TIMEOUT):
        begin = time.monotonic()
        while True:
            found = condition()
            if found:
                return found
            if self._launcher.poll() is not None:
                errors = self._launcher.stderr.read()
                raise Failed(f"{' '.join(map(str, self._command))}: ended before the {what}\n{errors[-2000:]}")
            if time.monotonic() - begin > timeout:
                raise TooLong(f"{' '.join(map(str, self._command))}: no {what} after {timeout} s")
            time.sleep(POLL)


def seconds_after_a_kill(run):
    """What goes by from a kill at a random moment to the end of the next step, less what a run's first step takes."""
    run.wait_for(f"step {LEAST}", lambda: len(run.records()) >= LEAST)
    first = run.records()[0]["seconds"]
    time.sleep(random.random())
    workers = run.workers()
    if len(workers) != RANKS:
        raise Failed(f"{len(workers)} workers found, not {RANKS}")
    killed = time.time()
    os.kill(random.choice(workers), signal.SIGKILL)
    run.wait_for("end of the ranks", lambda: not set(workers) & set(run.workers()))
    gone = time.time()
    before = max(record["step"] for record in run.records())
    after = run.wait_for("further step", lambda: [record for record in run.records() if record["time"] > gone], MEETING)[0]
    if before - after["step"] >= EVERY:
        raise Failed(f"step {after['step']} came after step {before}: more than {EVERY} steps were lost")
    return after["time"] - killed - first


def ours(recipe, *flags):
    with tempfile.TemporaryDirectory(prefix="lockstep-bench-") as folder:
        out = pathlib.Path(folder) / "run"
        command = [LOCKSTEP, "train", recipe, "--out", out, "--nproc", str(RANKS), "--threads", "1", "--quiet"]
        command += ["--epochs", "1000", "--eval-every", "1000epochs", "--save-every", "1000epochs"]
        command += ["--snapshot-every", str(EVERY), *flags]
        with Run(command, out / "metrics.jsonl") as run:
            return seconds_after_a_kill(run)
