"""Images a second at 1, 2, 4 and 8 ranks, beside PyTorch's DDP: strong scaling (the batch is divided) and weak scaling (each
rank has one), and what the cost model foretells for clusters. Where the machine has GPUs each rank has one of them, and a batch's
way there is a column."""

import statistics
import sys

import cost_model
from gpu import gpus
from processes import TooLong, our_step, peer

WHAT = "images a second at 1, 2, 4, 8 ranks, strong and weak, beside PyTorch's DDP, and the cost model's for clusters"
NAME = "scaling"
NETWORKS = {  # flags, samples of the whole batch (strong); an eighth of them is each rank's (weak)
    "lenet": (["--model", "lenet", "--size", "28"], 64),
    "resnet18": (["--model", "resnet18", "--size", "64"], 16),
    "unet": (["--model", "unet", "--size", "32"], 16),
    "alexnet": (["--model", "alexnet", "--size", "64"], 16),
}
COUNTS = (1, 2, 4, 8)
CLUSTERS = (8, 64, 512, 4096)
OURS = ["--channels-last", "on", "--optimizer", "sgd", "--seconds", "1"]
PEER = ["--channels-last", "--fused", "--bucket-view", "--optimizer", "sgd", "--seconds", "1"]


def measure(python, rounds):
    rows, devices = [], len(gpus())
    device = ["--device", "cuda"] if devices else []
    for network, (flags, whole) in NETWORKS.items():
        for kind in ("strong", "weak"):
            for ranks in (count for count in COUNTS if not devices or count <= devices):
                print(f"bench: {NAME}, {network}, {kind}, {ranks} ranks", file=sys.stderr)
                own = whole // ranks if kind == "strong" else whole // COUNTS[-1]
                sized = [*flags, *device, "--batch-size", str(own)]
                ours, theirs = [], []
                for _ in range(rounds):
                    found = our_step([*OURS, *sized], ranks=ranks)
                    ours.append(found["images_per_second"])
                    try:
                        theirs.append(1e3 * own * ranks / peer(python, [*PEER, *sized], ranks=ranks)["step_ms"])
                    except TooLong as late:  # many ranks on few cores; the others' figures stand
                        print(f"bench: {late}", file=sys.stderr)
                rows.append(
                    {
                        "name": NAME,
                        "network": network,
                        "kind": kind,
                        "ranks": ranks,
                        "ours": statistics.median(ours),
                        "peer": statistics.median(theirs) if theirs else None,
                        "bytes": 4 * found["parameters"],
                        "step_seconds": found["step_ms"] / 1e3,
                        "host_to_device_ms": found.get("host_to_device_ms"),
                    }
                )
    return rows


def first_of(row, rows):
    return next(each for each in rows if (each["network"], each["kind"]) == (row["network"], row["kind"]))


def foretold(rows):
    """Efficiency of each network's own step on clusters of nodes of eight ranks, nothing of the sum hidden by backward."""
    c = cost_model.CLUSTER
    for row in rows:
        if row["kind"] != "weak" or row["ranks"] != 1:
            continue
        shares = []
        for ranks in CLUSTERS:
            net = (c["latency"], c["message"], c["link"], c["add"], c["wake"], c["memory"])
            seconds = cost_model.hierarchical_time(row["bytes"], ranks // 8, 8, *net)
            shares.append(row["step_seconds"] / (row["step_seconds"] + seconds))
        yield row["network"], shares


def efficiency(row, rows, who):
    """Images a second, as a share of those of as many ranks that did not have to wait for each other; None: not known."""
    one = first_of(row, rows)[who]
    return row[who] / (one * row["ranks"]) if row[who] and one else None


def table(rows):
    has_device = any(row["host_to_device_ms"] is not None for row in rows)
    columns = ["network", "scaling", "ranks", "images/s", "of perfect", "PyTorch's", "of perfect"]
    columns += ["host to device"] if has_device else []
    lines = ["| " + " | ".join(columns) + " |", "| --- " * len(columns) + "|"]
    for row in rows:
        cells = [row["network"], row["kind"], row["ranks"]]
        for who in ("ours", "peer"):
            share = efficiency(row, rows, who)
            cells += [f"{row[who]:.0f}" if row[who] else "–", "–" if share is None else f"{100 * share:.0f} %"]
        cells += [f"{row['host_to_device_ms']:.2f} ms"] if has_device else []
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    lines += ["", "Foretold efficiency on nodes of 8 such ranks, 100 Gbit/s each, nothing hidden by backward:", ""]
    lines += ["| network | " + " | ".join(f"{ranks} ranks" for ranks in CLUSTERS) + " |", "| --- " * (len(CLUSTERS) + 1) + "|"]
    for network, shares in foretold(rows):
        lines.append(f"| {network} | " + " | ".join(f"{100 * share:.0f} %" for share in shares) + " |")
    return "\n".join(lines)
