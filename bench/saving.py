"""What saving costs a training: a U-Net of 31 million parameters with AdamW, 372 MB a checkpoint, on two ranks."""

import json
import pathlib
import statistics
import subprocess
import tempfile

from processes import LOCKSTEP, RANKS, TIMEOUT, Failed

NETWORK = ["--width", "64", "--size", "32", "--batch-size", "2", "--lanes", str(RANKS), "--optimizer", "adamw"]
EVERY = 20  # steps between saves
STEPS = 200
BEGINNING = 20  # of these, which are left out


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


def cost_ms(ms, every):
    """What a save adds to the `every` steps from it on, beside as many median steps. Of each of these steps the median of
    all saves counts, for others' work on the machine lengthens some. Step `every` saves: ms[every - 2] is its time."""
    firsts = range(2 * every - 2, len(ms) - every + 1, every)
    steps = [statistics.median(ms[first + k] for first in firsts) for k in range(every)]
    return sum(steps) - every * statistics.median(ms[BEGINNING:])


def stall_ms():
    """Of a save that a process beside the ranks writes to the disk."""
    return cost_ms(step_ms(STEPS, "--save-every", str(EVERY), "--snapshot-every", "0", "--keep", "1"), EVERY)


def snapshot_share():
    """Of a snapshot in the time of 50 steps, in percent."""
    ms = step_ms(STEPS, "--snapshot-every", str(EVERY), "--save-every", "10000")
    return 100 * cost_ms(ms, EVERY) / (50 * statistics.median(ms))
