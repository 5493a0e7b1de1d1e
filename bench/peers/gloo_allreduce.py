"""PyTorch's all_reduce over Gloo: the sum of N bytes of floats, in place; torchrun starts it. Arguments: sizes in bytes.

Rank 0 prints one line of JSON: [{"backend", "ranks", "bytes", "seconds" (median)}, …].
"""

import json
import sys
import time

import torch
import torch.distributed as dist


SECONDS = 2  # of measuring a size
BATCH_SECONDS = 2e-5


def round_seconds(data, batch):
    """Seconds of one call among `batch` without a barrier between them."""
    dist.barrier()
    start = time.perf_counter()
    for _ in range(batch):
        dist.all_reduce(data)
    return (time.perf_counter() - start) / batch


def median_seconds(size):
    """As `lockstep bench allreduce`: rounds of a barrier and some 20 us of calls; of each the slowest rank counts."""
    data = torch.zeros(size // 4)
    probe = min(round_seconds(data, 1) for _ in range(5))
    batch = max(1, min(100, int(BATCH_SECONDS / probe)))
    counts = torch.tensor([batch, max(10, min(5000, int(SECONDS / (probe * batch))))])
    dist.broadcast(counts, 0)
    batch, rounds = counts.tolist()
    times = torch.tensor([round_seconds(data, batch) for _ in range(rounds)], dtype=torch.float64)
    dist.all_reduce(times, dist.ReduceOp.MAX)
    return times.median().item()


def main():
    dist.init_process_group("gloo")
    rows = []
    for size in map(int, sys.argv[1:]):
        rows.append(
            {"backend": "gloo", "ranks": dist.get_world_size(), "bytes": size, "seconds": median_seconds(size)}
        )
    dist.barrier()
    if dist.get_rank() == 0:
        print(json.dumps(rows), flush=True)
    dist.destroy_process_group()


main()
