"""The forms of parallel training side by side: time of a step, memory, bytes, use of the cores; a table and a picture."""

import statistics
import sys

from processes import LOCKSTEP, last_json_line

WHAT = "one network trained in every form: DDP, sharded, DataParallel, pipelines, divided layers, a parameter server"
NAME = "choosing"
NETWORKS = {  # samples are those of a step, of all processes
    "lenet": ["--model", "lenet", "--batch-size", "64"],
    "resnet18": ["--model", "resnet18", "--size", "64", "--batch-size", "16"],
    "unet": ["--model", "unet", "--size", "64", "--batch-size", "8"],
    "alexnet": ["--model", "alexnet", "--size", "96", "--batch-size", "16"],
}
SECONDS = "2"  # of measuring, at least five steps


def forms(network):
    """(form, how many take part, flags)."""
    for count in (1, 2, 4, 8):
        yield "ddp", count, ["--nproc", str(count)]
        yield "dp", count, ["--nproc", "1", "--replicas", str(count)]
    yield "sharded", 2, ["--nproc", "2"]
    yield "pipeline", 2, ["--nproc", "2", "--micro-batches", "4"]
    yield "pipeline-ddp", 4, ["--nproc", "4", "--micro-batches", "2"]
    if network != "unet":  # which has no Linear layer
        yield "tensor", 2, ["--nproc", "2"]
    yield "server", 2, ["--nproc", "3"]  # two workers and the server


def measure(rounds):
    rows = []
    for network, flags in NETWORKS.items():
        found = {}
        for number in range(rounds):
            print(f"bench: {NAME}, {network}, round {number + 1} of {rounds}", file=sys.stderr)
            for form, count, more in forms(network):
                command = [LOCKSTEP, "bench", "forms", "--form", form, *flags, *more, "--seconds", SECONDS, "--json"]
                found.setdefault((form, count), []).append(last_json_line(command))
        for (form, count), all_of in found.items():
            figures = ("step_ms", "samples_per_second", "pss_mb_all", "sent_mb", "idle")
            row = {name: statistics.median(each[name] for each in all_of) for name in figures}
            rows.append({"name": NAME, "network": network, "form": form, "count": count, **row})
    return rows


def table(rows):
    lines = [
        "| network | form | of | a step | samples/s | memory, all | memory, each | sent by one | idle |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        lines.append(
            f"| {row['network']} | {row['form']} | {row['count']} | {row['step_ms']:.1f} ms "
            f"| {row['samples_per_second']:.0f} | {row['pss_mb_all']:.0f} MB "
            f"| {row['pss_mb_all'] / row['count']:.0f} MB | {row['sent_mb']:.1f} MB | {100 * row['idle']:.0f} % |"
        )
    return "\n".join(lines)
