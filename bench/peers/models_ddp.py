"""PyTorch's side of the benches: one rank of a DistributedDataParallel training loop; torchrun starts it.

The work of a step is that of `lockstep bench step`: forward, cross entropy (of pixels for unet), backward, all-reduce
(Gloo, on GPUs NCCL) and update, on data that never change. Rank 0 prints one line of JSON: the median step, when the
first step ended, and this rank's resident memory (`pss_mb_all`: the sum of all ranks'; `device_peak_mb_all`: of the most
memory that tensors took of their GPUs). Steps on a GPU are timed in blocks, as ours are: the host does not wait for each.
"""

import argparse
import contextlib
import json
import os
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
BLOCKS = 10  # of steps on a GPU
TRACED = 3  # steps

# class, channels, classes, whether it labels pixels
NETWORKS = {
    "alexnet": (networks.AlexNet, 3, 1000, False),
    "lenet": (networks.LeNet, 1, 10, False),
    "resnet18": (networks.ResNet18, 3, 1000, False),
    "resnet50": (networks.ResNet50, 3, 1000, False),
    "unet": (networks.UNet, 3, 2, True),
    "mobilenet_v2": (networks.MobileNetV2, 3, 1000, False),
}


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", choices=NETWORKS, default="lenet")
    parser.add_argument("--size", type=int, default=28, help="pixels a side")
    parser.add_argument("--batch-size", type=int, required=True)
    parser.add_argument("--optimizer", choices=["sgd", "adamw"], default="sgd")
    parser.add_argument("--dtype", choices=["fp32", "bf16", "fp16"], default="fp32", help="of autocast")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--channels-last", action="store_true")
    parser.add_argument("--fused", action="store_true", help="the fused optimizer")
    parser.add_argument("--bucket-view", action="store_true", help="gradient_as_bucket_view")
    parser.add_argument("--no-comm", action="store_true", help="without DistributedDataParallel")
    parser.add_argument("--trace", help="record three steps into this file, as bench step does")
    parser.add_argument("--seconds", type=float, default=4, help="of measuring; 0: only the first step")
    return parser.parse_args()


def make_device(options):
    if options.device == "cpu":
        dist.init_process_group("gloo")
        return torch.device("cpu")
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    torch.backends.cudnn.benchmark = True
    dist.init_process_group("nccl", device_id=device)
    return device


def make_step(options, device):
    torch.manual_seed(1)
    make, channels, classes, labels_pixels = NETWORKS[options.model]
    net = make()
    images = torch.randn(options.batch_size, channels, options.size, options.size)
    shape = (options.batch_size, options.size, options.size) if labels_pixels else (options.batch_size,)
    images, labels = images.to(device), torch.randint(0, classes, shape).to(device)
    net = net.to(device)
    if options.channels_last:
        net = net.to(memory_format=torch.channels_last)
        images = images.to(memory_format=torch.channels_last)
    optimizers = {"sgd": torch.optim.SGD, "adamw": torch.optim.AdamW}
    optimizer = optimizers[options.optimizer](net.parameters(), lr=1e-3, fused=options.fused or None)
    if not options.no_comm:
        ids = None if device.type == "cpu" else [device.index]
        net = DistributedDataParallel(net, device_ids=ids, gradient_as_bucket_view=options.bucket_view)
    half = {"fp32": None, "bf16": torch.bfloat16, "fp16": torch.float16}[options.dtype]
    scaler = torch.amp.GradScaler(device.type, enabled=half is torch.float16)

    def step():
        optimizer.zero_grad()
        with torch.autocast(device.type, half) if half else contextlib.nullcontext():
            output = net(images)
        scaler.scale(F.cross_entropy(output.float(), labels)).backward()
        scaler.step(optimizer)
        scaler.update()

    return step


def agreed(count, device):
    """Rank 0's count on all ranks: its clock decides, so that all stop at the same step."""
    value = torch.tensor([float(count)], device=device)
    dist.broadcast(value, 0)
    return int(value.item())


def seconds_of(step, count, device):
    """The seconds of so many steps, to the end of the last one on the device."""
    start = time.perf_counter()
    for _ in range(count):
        step()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter() - start


def probe(step, most, seconds, device):
    """Up to `most` steps in about `seconds`: how long one takes."""
    count = agreed(min(max(seconds / seconds_of(step, 1, device), 2), most) - 1, device)
    return seconds_of(step, count, device) / count


def measure(step, seconds, device):
    """The median seconds of a step."""
    warmup = min(WARMUP_SECONDS, seconds / 2)
    probe(step, WARMUP, warmup, device)
    count = agreed(max(LEAST, seconds / probe(step, PROBE, warmup / 2, device)), device)
    block = 1 if device.type == "cpu" else max(1, count // BLOCKS)
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    times = []
    for done in range(0, count, block):
        steps = min(block, count - done)
        times.append(seconds_of(step, steps, device) / steps)
    return sorted(times)[len(times) // 2]


def sum_of_all(figure, device):
    total = torch.tensor([figure], dtype=torch.float64, device=device)
    dist.all_reduce(total)
    return total.item()


def resident_mb():
    """(RSS, PSS) of this process; PSS shares the pages that several processes map among them."""
    with open("/proc/self/smaps_rollup") as file:
        fields = {line.split()[0]: line.split()[1] for line in file if "kB" in line}
    return int(fields["Rss:"]) * 1024 / 1e6, int(fields["Pss:"]) * 1024 / 1e6


def main():
    options = arguments()
    device = make_device(options)
    step = make_step(options, device)
    seconds_of(step, 1, device)
    result = {"first_step_ns": time.monotonic_ns(), "torch": torch.__version__}
    if options.seconds > 0:
        seconds = measure(step, options.seconds, device)
        result["step_ms"] = seconds * 1e3
        result["images_per_second"] = dist.get_world_size() * options.batch_size / seconds
    if options.trace:
        with torch.profiler.profile() as trace:
            seconds_of(step, TRACED, device)
        if dist.get_rank() == 0:
            trace.export_chrome_trace(options.trace)
    dist.barrier()  # no rank has left when memory is read
    result["rss_mb"], result["pss_mb"] = resident_mb()
    result["pss_mb_all"] = sum_of_all(result["pss_mb"], device)
    if device.type == "cuda":
        result["device_peak_mb_all"] = sum_of_all(torch.cuda.max_memory_allocated(device) / 1e6, device)
    dist.barrier()
    if dist.get_rank() == 0:
        print(json.dumps(result), flush=True)
    dist.destroy_process_group()


main()
