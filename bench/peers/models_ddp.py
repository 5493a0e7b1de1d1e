"""PyTorch's side of the benches: one rank of a DistributedDataParallel training loop; torchrun starts it.

The work of a step is that of `lockstep bench step`: forward, cross entropy (of pixels for unet), backward, all-reduce
(Gloo) and update, on data that never change. Rank 0 prints one line of JSON: the median step, when the first step
ended, and this rank's resident memory (`pss_mb_all`: the sum of all ranks').
"""

import argparse
import contextlib
import json
import time

import networks
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

WARMUP = 20
PROBE = 10
WARMUP_SECONDS = 2  # is enough, and of the probe half of it
LEAST = 20  # steps measured at least

# class, channels, classes, whether it labels pixels
NETWORKS = {
    "lenet": (networks.LeNet, 1, 10, False),
    "resnet18": (networks.ResNet18, 3, 1000, False),
    "unet": (networks.UNet, 3, 2, True),
    "mobilenet_v2": (networks.MobileNetV2, 3, 1000, False),
}


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", choices=NETWORKS, default="lenet")
    parser.add_argument("--size", type=int, default=28, help="pixels a side")
    parser.add_argument("--batch-size", type=int, required=True)
    parser.add_argument("--optimizer", choices=["sgd", "adamw"], default="sgd")
    parser.add_argument("--dtype", choices=["fp32", "bf16"], default="fp32", help="bf16: by autocast")
    parser.add_argument("--channels-last", action="store_true")
    parser.add_argument("--fused", action="store_true", help="the fused optimizer")
    parser.add_argument("--bucket-view", action="store_true", help="gradient_as_bucket_view")
    parser.add_argument("--no-comm", action="store_true", help="without DistributedDataParallel")
    parser.add_argument("--seconds", type=float, default=4, help="of measuring; 0: only the first step")
    return parser.parse_args()


def make_step(options):
    torch.manual_seed(1)
    make, channels, classes, labels_pixels = NETWORKS[options.model]
    net = make()
    images = torch.randn(options.batch_size, channels, options.size, options.size)
    shape = (options.batch_size, options.size, options.size) if labels_pixels else (options.batch_size,)
    labels = torch.randint(0, classes, shape)
    if options.channels_last:
        net = net.to(memory_format=torch.channels_last)
        images = images.to(memory_format=torch.channels_last)
    optimizers = {"sgd": torch.optim.SGD, "adamw": torch.optim.AdamW}
    optimizer = optimizers[options.optimizer](net.parameters(), lr=1e-3, fused=options.fused or None)
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


def agreed(count):
    """Rank 0's count on all ranks: its clock decides, so that all stop at the same step."""
    value = torch.tensor([float(count)])
    dist.broadcast(value, 0)
    return int(value.item())


def probe(step, most, seconds):
    """Up to `most` steps in about `seconds`: how long one takes."""
    start = time.perf_counter()
    step()
    count = agreed(min(max(seconds / (time.perf_counter() - start), 2), most) - 1)
    start = time.perf_counter()
    for _ in range(count):
        step()
    return (time.perf_counter() - start) / count


def measure(step, seconds):
    """The median seconds of a step."""
    probe(step, WARMUP, WARMUP_SECONDS)
    count = agreed(max(LEAST, seconds / probe(step, PROBE, WARMUP_SECONDS / 2)))
    times = []
    for _ in range(count):
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
    all_pss = torch.tensor([result["pss_mb"]])
    dist.all_reduce(all_pss)
    result["pss_mb_all"] = all_pss.item()
    dist.barrier()
    if dist.get_rank() == 0:
        print(json.dumps(result), flush=True)
    dist.destroy_process_group()


main()
