"""The input pipeline: batches of images beside DALI's and torchvision's, and training steps that load their images.

All run on two cores, in turn within each round. `data`: batches of 64 crops of 224 pixels, flipped and normalised, in
fp32 as [C, H, W]. `data-step`: a step of MobileNetV2 on 2 ranks.
"""

import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import processes

WHAT = {
    "data": "batches from photographs, and packed ones of 256 pixels, beside DALI's and torchvision's",
    "data-step": "a step of MobileNetV2 from JPEGs, and from packed ones of 128 pixels, by one from memory",
}
PHOTOGRAPHS = processes.ROOT.parent / "shared" / "data" / "photos"
PEERS = processes.ROOT / "bench" / "peers"
THREADS = 2
LOADING = ["--size", "224", "--batch-size", "64", "--threads", str(THREADS)]
STEP_SIZE, STEP_BATCH = 112, 16
STEP = [
    *["--model", "mobilenet_v2", "--size", str(STEP_SIZE), "--batch-size", str(STEP_BATCH), "--optimizer", "sgd"],
    *["--channels-last", "on", "--dtype", "bf16"],
]
FIGURES = ("images_per_second", "cpu_us")
# Of images a second: ours by the peer's.
TARGETS = {("ours", "dali"): 1.5, ("ours", "torchvision"): 3, ("ours, packed", "dali"): 3}


def folder(given):
    path = pathlib.Path(given) if given else PHOTOGRAPHS
    if not path.is_dir():
        raise processes.Failed(f"{path}: no such folder; name one of class folders by --photographs DIR")
    return path


def packed(photographs, pixels, out):
    """The photographs as `lockstep pack` writes them, their shorter side so many pixels."""
    path = pathlib.Path(out) / f"packed{pixels}"
    command = [processes.LOCKSTEP, "pack", photographs, path, "--size", str(pixels)]
    made = subprocess.run(command, capture_output=True, text=True)
    if made.returncode != 0:
        raise processes.Failed(f"{' '.join(map(str, command))}: exit code {made.returncode}\n{made.stderr[-2000:]}")
    return path


def loaded(data):
    return processes.last_json_line([processes.LOCKSTEP, "bench", "data", data, *LOADING, "--channels-last", "off", "--json"])


def programs(python, photographs, scratch):
    """By name, what gives the images a second and the processor's microseconds an image."""
    small = packed(photographs, 256, scratch)
    peer = lambda name: processes.last_json_line([python, PEERS / f"{name}_images.py", photographs, *LOADING])
    return {
        "ours": lambda: loaded(photographs),
        "ours, packed": lambda: loaded(small),
        "dali": lambda: peer("dali"),
        "torchvision": lambda: peer("torchvision"),
    }


def ratio(runs, ours, theirs, figure):
    """The median of the rounds' ratios: how many times as many images a second, or as little of the processor."""
    pairs = [(a[figure], b[figure]) for a, b in zip(runs[ours], runs[theirs])]
    return statistics.median(b / a if figure == "cpu_us" else a / b for a, b in pairs)


def measure_loading(python, photographs, rounds):
    with tempfile.TemporaryDirectory(prefix="lockstep-bench-") as scratch:
        all_of_them = programs(python, photographs, scratch)
        runs = rounds_of("data", all_of_them, rounds)
    rows = []
    for name, found in runs.items():
        row = {"name": "data", "program": name, "rounds": [[each[figure] for figure in FIGURES] for each in found]}
        row.update({figure: statistics.median(each[figure] for each in found) for figure in FIGURES})
        row["ratios"], row["targets"] = {}, {}
        for peer in ("dali", "torchvision") if name.startswith("ours") else ():
            row["ratios"][peer] = {figure: ratio(runs, name, peer, figure) for figure in FIGURES}
            least = TARGETS.get((name, peer))
            if least:
                row["targets"][peer] = {"at_least": least, "met": row["ratios"][peer]["images_per_second"] >= least}
        rows.append(row)
    return rows


def measure_steps(photographs, rounds):
    """Milliseconds of a step. From JPEGs it may take as much longer as their decoding takes of a rank's core, and 2 %."""
    with tempfile.TemporaryDirectory(prefix="lockstep-bench-") as scratch:
        small = packed(photographs, 128, scratch)
        decoding = ["--size", str(STEP_SIZE), "--batch-size", str(STEP_BATCH), "--threads", "1", "--json"]
        step = lambda more: processes.our_step([*STEP, *more])["mean_step_ms"]
        runs = rounds_of(
            "data-step",
            {
                "memory": lambda: step([]),
                "jpeg": lambda: step(["--data", photographs, "--workers", "1"]),
                "packed": lambda: step(["--data", small, "--workers", "1"]),
                "cpu_us": lambda: processes.last_json_line(
                    [processes.LOCKSTEP, "bench", "data", photographs, *decoding]
                )["cpu_us"],
            },
            rounds,
        )
    allowed = [1.02 * (1 + STEP_BATCH * us * 1e-3 / ms) for us, ms in zip(runs["cpu_us"], runs["memory"])]
    longer = {name: statistics.median(b / a for a, b in zip(runs["memory"], runs[name])) for name in ("jpeg", "packed")}
    at_most = {"jpeg": statistics.median(allowed), "packed": 1.05}
    rows = [{"name": "data-step", "data": "memory", "ms": statistics.median(runs["memory"]), "rounds": runs["memory"]}]
    for name, value in longer.items():
        row = {"name": "data-step", "data": name, "ms": statistics.median(runs[name]), "rounds": runs[name]}
        rows.append({**row, "ratio": value, "at_most": at_most[name], "met": value <= at_most[name]})
    return rows


def rounds_of(name, all_of_them, rounds):
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, set(sorted(cores)[:THREADS]))  # the programs inherit it
    runs = {each: [] for each in all_of_them}
    try:
        for number in range(rounds):
            print(f"bench: {name}, round {number + 1} of {rounds}", file=sys.stderr)
            for each, run in all_of_them.items():
                runs[each].append(run())
    finally:
        os.sched_setaffinity(0, cores)
    return runs


def verdict(met):
    return "met" if met else "missed"


def loading_table(rows):
    lines = [f"{'data':14} {'images/s':>9} {'CPU us/image':>13}   ratios to DALI and torchvision in images/s (in CPU time)"]
    for row in rows:
        cells = [f"{row['program']:14} {row['images_per_second']:9.0f} {row['cpu_us']:13.0f}"]
        for peer, found in row["ratios"].items():
            target = row["targets"].get(peer)
            said = f", >= {target['at_least']:g}: {verdict(target['met'])}" if target else ""
            cells.append(f"{found['images_per_second']:.2f} ({found['cpu_us']:.2f}){said}")
        lines.append("   ".join(cells))
    return "\n".join(lines)


def steps_table(rows):
    lines = [f"{'data-step':14} {'ms a step':>9}   by memory's"]
    for row in rows:
        said = f"   {row['ratio']:.3f}, <= {row['at_most']:.3f}: {verdict(row['met'])}" if "ratio" in row else ""
        lines.append(f"{row['data']:14} {row['ms']:9.2f}{said}")
    return "\n".join(lines)


TABLES = {"data": loading_table, "data-step": steps_table}
