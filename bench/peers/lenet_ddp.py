"""PyTorch's side of the LeNet benches: one rank of a DistributedDataParallel training loop; torchrun starts it.

The work of a step is that of `lockstep bench step --model lenet`: forward, cross entropy, backward, all-reduce (Gloo)
and SGD, on data that never change. Rank 0 prints one line of JSON: the median step, when the first step ended, and
this rank's resident memory.
"""

import argparse
import contextlib
import json
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

WARMUP = 20
PROBE = 10
LEAST = 30  # steps measured at least


class LeNet(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(1, 20, 5, padding=2)
        self.conv2 = torch.nn.Conv2d(20, 20, 5, padding=2)
        self.fc = torch.nn.Linear(980, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc(x.flatten(1))


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, required=True)
    parser.add_argument("--dtype", choices=["fp32", "bf16"], default="fp32", help="bf16: by autocast")
    parser.add_argument("--channels-last", action="store_true")
    parser.add_argument("--fused", action="store_true", help="the fused SGD")
    parser.add_argument("--bucket-view", action="store_true", help="gradient_as_bucket_view")
    parser.add_argument("--no-comm", action="store_true", help="without DistributedDataParallel")
    parser.add_argument("--seconds", type=float, default=4, help="of measuring; 0: only the first step")
    return parser.parse_args()


def make_step(options):
    torch.manual_seed(1)
    net = LeNet()
    images = torch.randn(options.batch_size, 1, 28, 28)
    labels = torch.randint(0, 10, (options.batch_size,))
    if options.channels_last:
        net = net.to(memory_format=torch.channels_last)
        images = images.to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3, fused=options.fused or None)
    if not options.no_comm:
        net = DistributedDataParallel(net, gradient_as_bucket_view=options.bucket_view)
    bf16 = options.dtype == "bf16"

    def step():
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16) if bf16 else contextlib.nullcontext():
            output = net(images)
        F.cross_entropy(output.float(), labels).backward()
        optimizer.step()

    return step


def measure(step, seconds):
    """The median seconds of a step. All ranks stop at the same one, which rank 0's clock decides."""
    for _ in range(WARMUP):
        step()
    start = time.perf_counter()
    for _ in range(PROBE):
        step()
    count = torch.tensor([max(LEAST, seconds / ((time.perf_counter() - start) / PROBE))])
    dist.broadcast(count, 0)
    times = []
    for _ in range(int(count.item())):
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    return sorted(times)[len(times) // 2]


def resident_mb():
    """(RSS, PSS) of this process; PSS shares the pages that several processes map among them."""
    with open("/proc/self/smaps_rollup") as file:
        fields = {line.split()[0]: line.split()[1] for line in file if "kB" in line}
    return int(fields["Rss:"]) * 1024 / 1e6, int(fields["Pss:"]) * 1024 / 1e6


def main():
    options = arguments()
    dist.init_process_group("gloo")
    step = make_step(options)
    step()
    result = {"first_step_ns": time.monotonic_ns()}
    if options.seconds > 0:
        result["step_ms"] = measure(step, options.seconds) * 1e3
    dist.barrier()  # no rank has left when memory is read
    result["rss_mb"], result["pss_mb"] = resident_mb()
    dist.barrier()
    if dist.get_rank() == 0:
        print(json.dumps(result), flush=True)
    dist.destroy_process_group()


main()
