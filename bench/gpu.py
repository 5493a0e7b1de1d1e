"""Training on GPUs beside PyTorch's: images a second, and the most device memory, at every opt level; and from JPEGs.

Ours is `lockstep bench step --device cuda`, with forward and backward as one CUDA graph, as `lockstep train` has them. Theirs is peers/models_ddp.py: DistributedDataParallel over NCCL with autocast
and GradScaler, channels_last, a fused optimizer, cudnn.benchmark. Ours chooses its kernels as freely (`--deterministic
off`), but for one row, and another launches
its operations one by one. 16 bits are fp16, with a dynamic loss scale on both sides. What does not fit into eight minutes is
left out, and named.
"""

import dataclasses
import pathlib
import statistics
import subprocess
import sys
import time
from typing import Callable

import images
import processes
from peers import environment

NAME = "gpu"
WHAT = "on GPUs: five networks at O0 to O3 beside PyTorch's with its amp, and ResNet-50 from JPEGs"
NO_GPU = 69  # the exit code where there is none, as bundle/gpu-check's
BUDGET = 450  # seconds for all parts, unless told otherwise
LEVELS = ("O0", "O1", "O2", "O3")
PEER_OF = {"O0": "fp32", "O1": "amp", "O2": "amp", "O3": "amp"}
BEST_PEER = ["--channels-last", "--fused", "--bucket-view"]
DATA = {
    "memory": [],
    "jpeg, copied when used": ["--prefetch", "off"],
    "jpeg, copied a step ahead": ["--prefetch", "on"],
    "jpeg, decoded by the device": ["--decode", "device"],
}


@dataclasses.dataclass(frozen=True)
class Network:
    size: int
    batch: int
    optimizer: str = "sgd"
    levels: tuple[str, ...] = LEVELS


@dataclasses.dataclass(frozen=True)
class Plan:
    device: str
    half: str
    seconds: float  # of measuring, a part
    networks: dict[str, Network]
    from_jpegs: tuple[str, Network]


REAL = Plan(
    device="cuda",
    half="fp16",
    seconds=2,
    networks={
        "resnet50": Network(224, 256),
        "resnet18": Network(224, 256),
        "unet": Network(256, 32, "adamw"),
        "mobilenet_v2": Network(224, 256),
        "lenet": Network(28, 64, levels=("O0",)),
    },
    from_jpegs=("resnet50", Network(224, 64)),
)
# The same programs and the same way through them where there is no GPU; its figures mean nothing.
REHEARSAL = Plan("cpu", "bf16", 0.05, {"resnet18": Network(32, 2)}, ("resnet18", Network(32, 2)))


@dataclasses.dataclass(frozen=True)
class Part:
    name: str
    run: Callable[[float], dict]  # of the seconds that it may take


def gpus():
    """The names of this machine's GPUs."""
    query = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    try:
        return subprocess.run(query, capture_output=True, text=True, check=True, timeout=30).stdout.split("\n")[:-1]
    except (OSError, subprocess.SubprocessError):
        return []


class Bench:
    def __init__(self, plan, ranks, python, photographs):
        self.plan, self.ranks, self.python, self.photographs = plan, ranks, python, photographs

    def parts(self):
        """What tells most comes first."""
        networks = self.plan.networks
        first = next(iter(networks))

        def at(level, names=networks):
            return [part for name in names for part in self.at_level(name, level)]

        all_of = at("O1") + at("O0", [name for name in networks if networks[name].levels == ("O0",)])
        all_of += at("O0", [first]) + at("O3", [first]) + at("O2", [first]) + self.loading()
        all_of.append(self.otherwise(first, "deterministic", "--deterministic", "on"))
        if self.ranks == 1:  # several are not recorded
            all_of.append(self.otherwise(first, "no graph", "--graph", "off"))
        all_of += at("O0") + at("O3") + at("O2")
        return list({part.name: part for part in all_of}.values())  # the peer's amp once

    def at_level(self, name, level):
        """Ours, and what it stands beside."""
        if level not in self.plan.networks[name].levels:
            return []
        found = [Part(f"{name} {level}", lambda timeout: self.ours(name, self.plan.networks[name], level, [], timeout))]
        if self.python:
            peer = PEER_OF[level]
            found.append(Part(f"{name} PyTorch {peer}", lambda timeout: self.peer(name, peer, timeout)))
        return found

    def loading(self):
        name, network = self.plan.from_jpegs
        found = []
        for data, flags in DATA.items():
            more = ["--data", str(self.photographs), *flags] if flags else []
            if self.photographs or not flags:
                found.append(Part(f"{name} from {data}", lambda timeout, more=more: self.ours(name, network, "O1", more, timeout)))
        return found

    def otherwise(self, name, how, *flags):
        """O1 with other flags."""
        network = self.plan.networks[name]
        return Part(f"{name} O1 {how}", lambda timeout: self.ours(name, network, "O1", flags, timeout))

    def flags(self, name, network, dtype):
        plan = self.plan
        sizes = ["--size", str(network.size), "--batch-size", str(network.batch)]
        times = ["--device", plan.device, "--dtype", dtype, "--seconds", str(plan.seconds)]
        return ["--model", name, *sizes, "--optimizer", network.optimizer, *times]

    def ours(self, name, network, level, more, timeout):
        at_level = ["--amp", level] if level != "O0" else []
        flags = self.flags(name, network, self.plan.half if at_level else "fp32")
        wanted = self.plan.device == "cuda" and self.ranks == 1 and "--graph" not in more
        graph = ["--graph", "on"] if wanted else []
        found = processes.our_step([*flags, *at_level, "--channels-last", "on", *graph, *more], self.ranks, timeout)
        if wanted and found.get("no_graph"):
            raise processes.Failed(f"{name} {level}: not recorded as a CUDA graph: {found['no_graph']}")
        return found

    def peer(self, name, kind, timeout):
        flags = self.flags(name, self.plan.networks[name], "fp32" if kind == "fp32" else self.plan.half)
        return processes.peer(self.python, [*flags, *BEST_PEER], self.ranks, timeout)


@dataclasses.dataclass
class Found:
    figures: dict[str, list[dict]] = dataclasses.field(default_factory=dict)  # by part, of each round
    failed: dict[str, str] = dataclasses.field(default_factory=dict)
    left_out: list[str] = dataclasses.field(default_factory=list)

    def median(self, part, figure):
        values = [each[figure] for each in self.figures.get(part, []) if figure in each]
        return statistics.median(values) if values else None

    def ratio(self, one, other, figure="images_per_second"):
        pairs = list(zip(self.figures.get(one, []), self.figures.get(other, [])))
        return statistics.median(a[figure] / b[figure] for a, b in pairs) if pairs else None


def run_all(parts, rounds, budget, clock=time.monotonic):
    """The first round measures what fits into the budget; a further one begins if it fits whole."""
    found, took, end = Found(), {}, clock() + budget
    for number in range(rounds):
        if number and sum(took.values()) > end - clock():
            break
        for part in parts:
            left = end - clock()
            if part.name in found.failed or part.name in found.left_out:
                continue
            if left <= max(took.values(), default=0):
                if number == 0:
                    found.left_out.append(part.name)
                continue
            print(f"bench: gpu, round {number + 1}, {part.name}", file=sys.stderr)
            start, timeout = clock(), min(processes.TIMEOUT, left)
            try:
                figures = part.run(timeout)
                found.figures.setdefault(part.name, []).append(figures)
            except processes.TooLong:
                found.left_out.append(f"{part.name} (not done after {timeout:.0f} s)")
            except processes.Failed as failure:
                found.failed[part.name] = str(failure)
            took[part.name] = clock() - start
    return found


def measure(options):
    """A report: rows of levels and of data, what was left out, what failed."""
    plan = REHEARSAL if options.rehearse else REAL
    python = environment.python_that_computes_on(plan.device)
    photographs = pathlib.Path(options.photographs) if options.photographs else images.PHOTOGRAPHS
    without = []
    if not python:
        without.append(f"PyTorch: no Python here has one for {plan.device}; ./run setup cuda installs it, LOCKSTEP_BENCH_PYTHON names it")
    if not photographs.is_dir():
        without.append(f"from JPEGs: {photographs}: no such folder; name one of class folders by --photographs DIR")
        photographs = None
    found = run_all(Bench(plan, options.gpus, python, photographs).parts(), options.rounds, options.budget)
    return report(plan, found, without, options.gpus)


def report(plan, found, without, ranks):
    levels = []
    for name in plan.networks:
        for level in (*LEVELS, "O1 deterministic", "O1 no graph"):
            ours, peer = f"{name} {level}", f"{name} PyTorch {PEER_OF[level[:2]]}"
            if ours not in found.figures:
                continue
            row = {"network": name, "level": level, "ratio": found.ratio(ours, peer)}
            for side, part in (("ours", ours), ("peer", peer)):
                row[side] = found.median(part, "images_per_second")
                row[f"{side}_peak_mb"] = found.median(part, "device_peak_mb_all")
            levels.append(row)
    name, network = plan.from_jpegs
    memory = f"{name} from memory"
    data = [
        {
            "data": each,
            "images_per_second": found.median(f"{name} from {each}", "images_per_second"),
            "by_memory": found.ratio(f"{name} from {each}", memory),
        }
        for each in DATA
        if f"{name} from {each}" in found.figures
    ]
    versions = {each["torch"] for figures in found.figures.values() for each in figures if "torch" in each}
    return {
        "name": NAME,
        "device": plan.device,
        "gpus": gpus(),
        "ranks": ranks,
        "half": plan.half,
        "pytorch": sorted(versions),
        "batches": {name: dataclasses.asdict(network) for name, network in plan.networks.items()},
        "levels": levels,
        "from_jpegs": {"network": name, "batch": network.batch, "rows": data},
        "rounds": found.figures,
        "left_out": [*found.left_out, *without],
        "failed": found.failed,
    }


def number(value, form, width):
    return " " * width if value is None else f"{value:{width}{form}}"


def levels_table(rows):
    lines = [f"{'network':14} {'level':18} {'images/s':>9} {'peak MB':>9}   {'PyTorch':>9} {'peak MB':>9}   {'ratio':>6}"]
    for row in rows:
        ours = f"{number(row['ours'], '.0f', 9)} {number(row['ours_peak_mb'], '.0f', 9)}"
        peer = f"{number(row['peer'], '.0f', 9)} {number(row['peer_peak_mb'], '.0f', 9)}"
        lines.append(f"{row['network']:14} {row['level']:18} {ours}   {peer}   {number(row['ratio'], '.2f', 6)}".rstrip())
    return lines


def data_table(found):
    lines = [f"{found['network']} at O1, batch {found['batch']}, from {'':<6} {'images/s':>9}   by memory's"]
    for row in found["rows"]:
        lines.append(f"  {row['data']:32} {number(row['images_per_second'], '.0f', 9)}   {number(row['by_memory'], '.2f', 6)}")
    return lines


def table(found):
    """Everything that the report has, for people."""
    where = ", ".join(found["gpus"]) if found["device"] == "cuda" else "a rehearsal on the CPU: its figures mean nothing"
    pytorch = f"PyTorch {', '.join(found['pytorch'])}" if found["pytorch"] else "no PyTorch"
    lines = [f"{where}; {found['ranks']} process(es); {pytorch}; O1 to O3 and its amp in {found['half']}", ""]
    lines += levels_table(found["levels"])
    if found["from_jpegs"]["rows"]:
        lines += ["", *data_table(found["from_jpegs"])]
    lines += [f"left out: {each}" for each in found["left_out"]]
    lines += [f"failed: {name}: {why}" for name, why in found["failed"].items()]
    return "\n".join(lines)
