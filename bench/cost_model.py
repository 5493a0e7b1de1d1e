#!/usr/bin/env python3
"""The cost model of docs/collectives.md: what an all-reduce takes on 8 to 4,096 ranks, and how the same formulas, fitted to
2 ranks of this machine, foretell 4 and 8 of them.

    bench/cost_model.py                  the table for clusters
    bench/cost_model.py --check          measures 2, 4 and 8 ranks here (lockstep bench allreduce) and compares
"""
import argparse
import json
import os
import subprocess
from math import ceil, log2
from pathlib import Path

LOCKSTEP = Path(__file__).resolve().parents[1] / 'build/release/bin/lockstep'


SWITCH = 3.7e-6  # seconds that a rank's turn on a shared core costs; measured with 4 ranks on 2 cores


def fold_time(n, ranks, latency, message, link, add):
    """Flat: two rounds of a message to and from every other rank; then 1/N of the data is added N - 1 times."""
    if ranks == 1:
        return 0.0
    return 2 * (latency + (ranks - 1) * message) + 2 * n * (ranks - 1) / ranks / link + n * (ranks - 1) / ranks / add


def ring_time(n, ranks, latency, message, link, add):
    if ranks == 1:
        return 0.0
    return 2 * (ranks - 1) * (latency + message + n / ranks / link) + n * (ranks - 1) / ranks / add


def shm_time(n, ranks, wake, memory):
    """Every rank reads its slice from all ranks and writes it to all: 2 n bytes a rank, out of one memory."""
    return 0.0 if ranks == 1 else wake + 2 * ranks * n / memory


def hierarchical_time(n, nodes, local, latency, message, link, add, wake, memory):
    """Shared memory in a node; local rank l folds slice l with the other nodes' local ranks l. The node's link carries all
    slices, so the rails share it."""
    between = fold_time(n / local, nodes, latency, message, link / local, add)
    return shm_time(n, local, wake, memory) + between


# A cluster as they are: 100 Gbit/s a node, 8 ranks a node, TCP.
CLUSTER = {'latency': 30e-6, 'message': 4e-6, 'link': 12.5e9, 'add': 10e9, 'wake': 3e-6, 'memory': 200e9}


def print_clusters(n):
    print(f'all-reduce of {n / 2**20:.0f} MiB; nodes of 8 ranks, 100 Gbit/s each, 30 us; milliseconds')
    print(f'{"ranks":>6} {"nodes":>6} {"flat fold":>10} {"flat ring":>10} {"hierarchical":>13} {"bf16 on the wire":>17}')
    c = CLUSTER
    for ranks in (8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096):
        nodes, local = ranks // 8, 8
        share = c['link'] / local  # flat: eight ranks of a node share its link
        net = (c['latency'], c['message'], share, c['add'])
        row = [fold_time(n, ranks, *net), ring_time(n, ranks, *net)]
        for width in (1.0, 0.5):
            between = fold_time(n * width / local, nodes, c['latency'], c['message'], share, c['add'])
            row.append(shm_time(n, local, c['wake'], c['memory']) + between)
        print(f'{ranks:>6} {nodes:>6} {row[0] * 1e3:>10.1f} {row[1] * 1e3:>10.1f} {row[2] * 1e3:>13.1f} {row[3] * 1e3:>17.1f}')


def measure(backend, ranks, sizes, algorithm='fold'):
    out = subprocess.run([LOCKSTEP, 'bench', 'allreduce', '--backend', backend, '--nproc', str(ranks), '--algorithm', algorithm,
                          '--sizes', ','.join(map(str, sizes)), '--json'], check=True, capture_output=True, text=True).stdout
    return {row['bytes']: row['seconds'] for row in json.loads(out)}


def check():
    """On one machine the network is the loopback: its bandwidth is the machine's, shared by all ranks, so a rank's link is
    1/N of it, and so is its share of the cores beyond their number."""
    small, large = 4096, 64 << 20
    print(f'{"backend":>8} {"ranks":>6} {"bytes":>10} {"measured ms":>12} {"model ms":>10} {"ratio":>6}')
    for backend in ('shm', 'gloo'):
        base = measure(backend, 2, (small, large))
        for ranks in (2, 4, 8):
            seconds = base if ranks == 2 else measure(backend, ranks, (small, large))
            # Bytes moved by all ranks together: 2 N n through memory, or 2 (N - 1) n through the loopback.
            factor = ranks / 2 if backend == 'shm' else ranks - 1
            for size in (small, large):
                # Latency: of gloo's two rounds of N - 1 messages a rank; of shm, where ranks share cores, of switches.
                model = base[size] * (factor if size == large else ranks * (ranks - 1) / 2)
                if backend == 'shm' and size == small:
                    model = base[size] if ranks <= os.cpu_count() else SWITCH * ranks
                print(f'{backend:>8} {ranks:>6} {size:>10} {seconds[size] * 1e3:>12.3f} {model * 1e3:>10.3f} '
                      f'{seconds[size] / model:>6.2f}')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--check', action='store_true')
    parser.add_argument('--mib', type=float, default=100)
    options = parser.parse_args()
    check() if options.check else print_clusters(options.mib * 2**20)


if __name__ == '__main__':
    main()
