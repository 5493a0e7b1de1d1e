"""The forms of parallel training side by side: time of a step, memory, use of the cores."""

import os
import statistics

from processes import our_step

WHAT = "data parallelism over processes (DDP) and over threads of one (DataParallel), 1 to 8 of them"
NAME = "choosing"
NETWORKS = {  # short steps and long ones; flags, samples of each process or replica
    "lenet": ["--model", "lenet", "--batch-size", "32"],
    "resnet18": ["--model", "resnet18", "--size", "64", "--batch-size", "8"],
    "unet": ["--model", "unet", "--size", "64", "--batch-size", "2"],
}
COUNTS = (1, 2, 4, 8)
SECONDS = "2"  # of measuring


def figures(flags, form, count):
    cores = min(count, len(os.sched_getaffinity(0)))
    # A process of replicas has a thread for each core that they may use; they share them.
    ranks, replicas, threads = (count, 1, 1) if form == "ddp" else (1, count, cores)
    found = our_step([*flags, "--replicas", str(replicas), "--seconds", SECONDS], ranks=ranks, threads=threads)
    busy = found["cpu_cores_a_process"] * ranks / cores
    return {
        "step_ms": found["step_ms"],
        "images_per_second": found["images_per_second"],
        "mb_each": found["pss_mb_all"] / count,
        "idle": max(0.0, 1 - busy),
    }


def measure(rounds):
    rows = []
    for network, flags in NETWORKS.items():
        for count in COUNTS:
            found = {"ddp": [], "dp": []}
            for _ in range(rounds):
                for form, all_of in found.items():
                    all_of.append(figures(flags, form, count))
            for form, all_of in found.items():
                row = {key: statistics.median(each[key] for each in all_of) for key in all_of[0]}
                rows.append({"name": NAME, "network": network, "form": form, "count": count, **row})
    return rows


def table(rows):
    lines = ["| network | form | of | a step | images/s | memory each | idle |", "| --- | --- | --- | --- | --- | --- | --- |"]
    for row in rows:
        lines.append(
            f"| {row['network']} | {row['form']} | {row['count']} | {row['step_ms']:.1f} ms | {row['images_per_second']:.0f} "
            f"| {row['mb_each']:.0f} MB | {100 * row['idle']:.0f} % |"
        )
    return "\n".join(lines)
