"""What `lockstep train RECIPE` chooses by itself, beside other choices of processes, threads and lanes on this machine."""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import tomllib

from processes import LOCKSTEP, TIMEOUT, Failed

WHAT = "samples/s of train without an option, by the best of other --nproc, --threads and --lanes"
NAME = "defaults"
STEPS = {"mnist": 300, "imagenet": 8, "unet": 5}
SHARE = 0.9  # of the best choice's speed, which the default is to reach
SLICES = (1, 2, 4, 8)


def samples_per_second(recipe, flags):
    """Of the median step from the second on, and the samples of a step."""
    with tempfile.TemporaryDirectory(prefix="lockstep-bench-") as folder:
        out = pathlib.Path(folder) / "run"
        steps = str(STEPS[recipe])
        command = [LOCKSTEP, "train", recipe, "--steps", steps, "--eval-every", "1000epochs", "--quiet", "--out", out]
        done = subprocess.run([*command, *flags], capture_output=True, text=True, timeout=TIMEOUT)
        if done.returncode != 0:
            raise Failed(f"lockstep train {recipe}: exit code {done.returncode}\n{done.stderr[-2000:]}")
        records = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
        config = tomllib.loads((out / "config.toml").read_text())
    seconds = statistics.median(record["seconds"] for record in records if record["kind"] == "train" and record["step"] > 1)
    batch = config["lanes"] * config["batch-size"]
    return batch / seconds, batch


def choices(batch):
    """Flags of other choices, all with steps of the same number of samples."""
    cores = len(os.sched_getaffinity(0))
    for ranks in (count for count in SLICES if count <= cores):
        for lanes in (count for count in SLICES if count >= ranks):
            flags = {"nproc": ranks, "threads": cores // ranks, "lanes": lanes, "global-batch-size": batch}
            yield [word for name, value in flags.items() for word in (f"--{name}", str(value))]


def measure(rounds):
    """A row of each recipe: the default's figure, and the best other choice's; both are medians of the rounds."""
    rows = []
    for recipe in STEPS:
        speeds, batch = {}, samples_per_second(recipe, [])[1]
        for number in range(rounds):
            print(f"bench: {NAME}, {recipe}, round {number + 1} of {rounds}", file=sys.stderr)
            for flags in [[], *choices(batch)]:
                speeds.setdefault(" ".join(flags[:6]), []).append(samples_per_second(recipe, flags)[0])
        medians = {flags: statistics.median(values) for flags, values in speeds.items()}
        best = max((flags for flags in medians if flags), key=medians.get)
        rows.append({"name": NAME, "recipe": recipe, "default": medians[""], "best": medians[best], "choice": best})
        rows[-1] |= {"share": medians[""] / medians[best], "rounds": speeds}
    return rows


def table(rows):
    lines = [f"{'recipe':10} {'default':>12} {'best':>12} {'share':>6}  {'>= ' + str(SHARE):7} the best choice"]
    for row in rows:
        speeds = f"{row['default']:8.1f} /s  {row['best']:8.1f} /s"
        met = "yes" if row["share"] >= SHARE else "no"
        lines.append(f"{row['recipe']:10} {speeds} {row['share']:6.2f}  {met:7} {row['choice']}")
    return "\n".join(lines)
