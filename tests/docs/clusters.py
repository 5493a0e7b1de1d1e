"""Runs the scripts of examples/clusters as far as one machine goes: what Slurm, JobSet and Kubeflow Trainer would start
on each node is started here, with the variables that they set, at one address. A second start goes on.

    clusters.py SOURCE BIN
"""

import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile

SOURCE, BIN = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
STEPS = 12


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def script_in(path):
    """The lines of a YAML file's `- |` block."""
    block = re.search(r"^( *)- \|\n((?:\1  .*\n)+)", path.read_text(), re.MULTILINE)
    return re.sub(rf"^{block[1]}  ", "", block[2], flags=re.MULTILINE)


def shortened(script, folder):
    return script.replace("train mnist", f"train mnist --steps {STEPS}").replace("/runs/", f"{folder}/runs/")


def start(script, folder, variables):
    environment = {**os.environ, "PATH": f"{folder}:{BIN}:{os.environ['PATH']}", **variables}
    return subprocess.Popen(["/bin/bash", "-c", script], cwd=folder, env=environment, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def expect(what, programs, words):
    said = []
    for program in programs:
        try:
            said.append(program.communicate(timeout=120)[0])
        except subprocess.TimeoutExpired:
            program.kill()
            said.append(program.communicate()[0] + "(did not end)")
    whole = "\n".join(said)
    if any(program.returncode != 0 for program in programs) or words not in whole:
        sys.exit(f"{what}: expected success and {words!r}:\n{whole}")


def write_program(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def try_slurm(folder):
    write_program(folder / "srun", 'exec "$@"')
    write_program(folder / "scontrol", "echo 127.0.0.1")
    script = shortened((SOURCE / "examples/clusters/slurm.sbatch").read_text(), folder)
    variables = {"SLURM_NNODES": "1", "SLURM_JOB_NODELIST": "node1", "SLURM_PROCID": "0", "SLURM_NTASKS": "1",
                 "SLURM_JOB_ID": "7"}
    expect("slurm.sbatch", [start(script, folder, variables)], f"done: {STEPS} steps")
    expect("slurm.sbatch, requeued", [start(script, folder, {**variables, "SLURM_RESTART_COUNT": "1"})],
           "nothing left to do")


def try_jobset(folder):
    script = shortened(script_in(SOURCE / "examples/clusters/jobset.yaml"), folder)
    for words in (f"done: {STEPS} steps", "nothing left to do"):
        here = script.replace("digits-node-0-0.digits", f"127.0.0.1 --master-port {free_port()} --nproc 1")
        nodes = [start(here, folder, {"JOB_COMPLETION_INDEX": str(node)}) for node in range(2)]
        expect("jobset.yaml", nodes, words)


def try_trainjob(folder):
    script = shortened(script_in(SOURCE / "examples/clusters/trainjob.yaml"), folder)
    for words in (f"done: {STEPS} steps", "nothing left to do"):
        variables = {"PET_NNODES": "2", "PET_NPROC_PER_NODE": "1", "PET_MASTER_ADDR": "127.0.0.1",
                     "PET_MASTER_PORT": str(free_port())}
        nodes = [start(script, folder, {**variables, "PET_NODE_RANK": str(node)}) for node in range(2)]
        expect("trainjob.yaml", nodes, words)


for attempt in (try_slurm, try_jobset, try_trainjob):
    with tempfile.TemporaryDirectory() as made:
        attempt(pathlib.Path(made))
print("ran what Slurm, JobSet and Kubeflow Trainer would start")
