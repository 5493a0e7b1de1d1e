"""What saving costs a training: a U-Net of 31 million parameters with AdamW, 372 MB a checkpoint, on two ranks."""

import json
import pathlib
import statistics
import subprocess
import tempfile

from processes import LOCKSTEP, RANKS, TIMEOUT, Failed

NETWORK = ["--width", "64", "--size", "32", "--batch-size", "2", "--lanes", str(RANKS), "--optimizer", "adamw"]
EVERY = 20  # steps between saves
STEPS = 120
BEGINNING = 20  # of these, which are left out
ROUNDS = 3  # of a run with saves, or snapshots, and one without
NONE = ["--save-every", "10000", "--snapshot-every", "0"]


def step_ms(steps, *flags):
    """Milliseconds from each step's end to the next one's, of a run from the second step on."""
    with tempfile.TemporaryDirectory(prefix="lockstep-bench-") as folder:
        out = pathlib.Path(folder) / "run"
        command = [LOCKSTEP, "train", "unet", *NETWORK, "--amp", "O1", "--dtype", "bf16", "--nproc", str(RANKS)]
        command += ["--threads", "1", "--steps", str(steps), "--epochs", "1000", "--eval-every", "1000epochs", "--quiet"]
        done = subprocess.run([*command, "--out", out, *flags], capture_output=True, text=True, timeout=TIMEOUT)
        if done.returncode != 0:
            raise Failed(f"lockstep train unet: exit code {done.returncode}\n{done.stderr[-2000:]}")
        records = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    times = [record["time"] for record in records if record["kind"] == "train"]
    return [1e3 * (next_one - one) for one, next_one in zip(times, times[1:])]


def windows_ms(ms):
    """What each `EVERY` steps from a save on take beyond as many median steps of the run: a sum, wherever in them a stall
    may come. Step `EVERY` saves: ms[EVERY - 2] is its time."""
    usual = EVERY * statistics.median(ms[BEGINNING:])
    return [sum(ms[first : first + EVERY]) - usual for first in range(2 * EVERY - 2, len(ms) - EVERY + 1, EVERY)]


def cost_ms(flags):
    """What the flags' saves add to the steps from each on, its error, and a usual step: the median window less that of runs
    without saves, in turn, whose windows tell how much others' work on the machine hides."""
    saving, usual, steps = [], [], []
    for _ in range(ROUNDS):
        saving += windows_ms(step_ms(STEPS, *flags))
        without = step_ms(STEPS, *NONE)
        usual += windows_ms(without)
        steps += without[BEGINNING:]
    low, _, high = statistics.quantiles(usual, n=4)
    error = (high - low) / len(usual) ** 0.5  # of a median, about
    return statistics.median(saving) - statistics.median(usual), error, statistics.median(steps)


def known(cost, error, most):
    """The cost, unless what it may be at most is within its error."""
    if error > most:
        raise Failed(f"others' work makes the steps without saves differ, by more than {error:.0f} ms; try on a quiet machine")
    return cost


def stall_ms():
    """Of a save that a process beside the ranks writes to the disk."""
    cost, error, _ = cost_ms(["--save-every", str(EVERY), "--snapshot-every", "0", "--keep", "1"])
    return known(cost, error, most=40)


def snapshot_share():
    """Of a snapshot in the time of 50 steps, in percent."""
    cost, error, step = cost_ms(["--snapshot-every", str(EVERY), "--save-every", "10000"])
    return 100 * known(cost, error, most=0.5 * step) / (50 * step)
