"""The all-reduce: ours, MPI's own and PyTorch's over Gloo, between 2 processes, in turn within each round."""

import os
import shutil
import statistics
import subprocess
import sys

import processes

WHAT = "an all-reduce of 1 KB, 1 MB and 100 MB (fp32) beside Gloo's and MPI's"
GLOO = processes.ROOT / "bench" / "peers" / "gloo_allreduce.py"
MPI = processes.ROOT / "bench" / "peers" / "mpi_allreduce.cc"
MPI_PROGRAM = processes.ROOT / ".cache" / "bench-mpi" / "mpi_allreduce"
SIZES = [1 << 10, 1 << 20, 100 << 20]
# By size: ours at least so many times as fast as Gloo and as MPI; ours at most so many seconds.
TARGETS = {SIZES[0]: {"at_most": 3e-6}, SIZES[1]: {"gloo": 20, "mpi": 5}, SIZES[2]: {"gloo": 8, "mpi": 4}}
OURS = ["bench", "allreduce", "--backend", "shm", "--nproc", str(processes.RANKS), "--sizes", ",".join(map(str, SIZES)), "--json"]
# Open MPI's own, which other MPIs don't mind: containers run as root.
MPI_SETTINGS = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def seconds_by_size(command, environment=None):
    rows = processes.last_json_line(command, {**os.environ, "OMP_NUM_THREADS": "1", **(environment or {})})
    return {row["bytes"]: row["seconds"] for row in rows if row["bytes"] in SIZES}


def mpi_program():
    """MPI's side, built where MPI's compiler is; None elsewhere."""
    if not (shutil.which("mpicxx") and shutil.which("mpirun")):
        return None
    if not (MPI_PROGRAM.exists() and MPI_PROGRAM.stat().st_mtime >= MPI.stat().st_mtime):
        MPI_PROGRAM.parent.mkdir(parents=True, exist_ok=True)
        try:
            subprocess.run(["mpicxx", "-O2", "-std=c++20", MPI, "-o", MPI_PROGRAM], check=True)
        except subprocess.CalledProcessError as error:
            raise processes.Failed(f"{MPI}: not built: {error}") from None
    return MPI_PROGRAM


def runners(python):
    sizes = list(map(str, SIZES))
    torchrun = [python, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(processes.RANKS)]
    found = {
        "ours": lambda: seconds_by_size([processes.LOCKSTEP, *OURS]),
        "gloo": lambda: seconds_by_size([*torchrun, GLOO, *sizes]),
    }
    program = mpi_program()
    if program:
        mpirun = ["mpirun", "-n", str(processes.RANKS), program, *sizes]
        found["mpi"] = lambda: seconds_by_size(mpirun, MPI_SETTINGS)
    return found


def met(target, row):
    if "at_most" in target:
        return row["ours"] <= target["at_most"]
    return all(row["ratios"][peer] >= least for peer, least in target.items() if peer in row["ratios"])


def measure(python, rounds):
    """One row for each size: medians in seconds, and the median of the rounds' ratios to ours."""
    programs = runners(python)
    times = {name: [] for name in programs}
    for number in range(rounds):
        print(f"bench: allreduce, round {number + 1} of {rounds}", file=sys.stderr)
        for name, run in programs.items():
            times[name].append(run())
    rows = []
    for size in SIZES:
        by_name = {name: [each[size] for each in runs] for name, runs in times.items()}
        row = {"name": "allreduce", "bytes": size, "rounds": by_name}
        row.update({name: statistics.median(values) for name, values in by_name.items()})
        row["ratios"] = {
            name: statistics.median(b / a for a, b in zip(by_name["ours"], values))
            for name, values in by_name.items()
            if name != "ours"
        }
        rows.append({**row, "target": TARGETS[size], "met": met(TARGETS[size], row)})
    return rows


def target_text(target):
    if "at_most" in target:
        return f"<= {target['at_most'] * 1e6:g} us"
    return f">= {target['gloo']}x Gloo, {target['mpi']}x MPI"


def table(rows):
    lines = [f"{'allreduce':>12} {'ours':>12} {'Gloo':>12} {'MPI':>12}  {'Gloo/ours':>9} {'MPI/ours':>9}  target"]
    for row in rows:
        cells = [f"{row[name] * 1e6:9.1f} us" if name in row else f"{'-':>12}" for name in ("ours", "gloo", "mpi")]
        ratios = [f"{row['ratios'][name]:9.1f}" if name in row["ratios"] else f"{'-':>9}" for name in ("gloo", "mpi")]
        verdict = "met" if row["met"] else "missed"
        target = target_text(row["target"])
        lines.append(f"{row['bytes']:12d} {' '.join(cells)}  {' '.join(ratios)}  {target}: {verdict}")
    if "mpi" not in rows[0]:
        lines.append("MPI: not measured, for there is no mpicxx or mpirun (Debian: libopenmpi-dev, openmpi-bin)")
    return "\n".join(lines)
