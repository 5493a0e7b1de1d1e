"""PyTorch's side of `recovery`: a rank of a DistributedDataParallel training that goes on from its last checkpoint.

torchrun starts it, and starts it anew. Rank 0 saves every so many steps, and writes a line of JSON after each step: its
number, when it ended, and what it took.
"""

import argparse
import json
import os
import pathlib
import time

import networks
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

NETWORKS = {"lenet": (networks.LeNet, 1, 10), "resnet18": (networks.ResNet18, 3, 1000)}


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", choices=NETWORKS, default="lenet")
    parser.add_argument("--size", type=int, default=28, help="pixels a side")
    parser.add_argument("--batch-size", type=int, required=True)
    parser.add_argument("--folder", type=pathlib.Path, required=True)
    parser.add_argument("--every", type=int, required=True, help="steps between two checkpoints")
    return parser.parse_args()


def save(file, step, model, optimizer):
    temporary = file.with_suffix(".tmp")
    torch.save({"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, temporary)
    os.replace(temporary, file)


def main():
    options = arguments()
    dist.init_process_group("gloo")
    leads = dist.get_rank() == 0
    network, channels, classes = NETWORKS[options.model]
    torch.manual_seed(1)
    model = DistributedDataParallel(network(), gradient_as_bucket_view=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    checkpoint = options.folder / "last.pt"
    step = 0
    if checkpoint.exists():
        state = torch.load(checkpoint, weights_only=True)
        step = state["step"]
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
    images = torch.rand(options.batch_size, channels, options.size, options.size)
    labels = torch.randint(classes, [options.batch_size])
    with open(options.folder / "steps.jsonl", "a", buffering=1) as log:
        while True:
            begin = time.monotonic()
            optimizer.zero_grad()
            F.cross_entropy(model(images), labels).backward()
            optimizer.step()
            step += 1
            if leads:
                log.write(json.dumps({"step": step, "time": time.time(), "seconds": time.monotonic() - begin}) + "\n")
            if leads and step % options.every == 0:
                save(checkpoint, step, model, optimizer)


if __name__ == "__main__":
    main()
