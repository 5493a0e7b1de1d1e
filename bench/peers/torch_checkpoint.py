"""PyTorch's torch.save and torch.load of a model and its AdamW, as `lockstep bench checkpoint` has them: layers of 1024 by
1024. Prints one line of JSON with the medians of the rounds."""

import argparse
import json
import os
import statistics
import tempfile
import time

import torch

WIDTH = 1024
LAYER_BYTES = 4 * WIDTH * (WIDTH + 1)


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--megabytes", type=int, default=372)
    parser.add_argument("--weights", action="store_true", help="without AdamW's state")
    parser.add_argument("--folder", default=tempfile.gettempdir())
    parser.add_argument("--cold", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    return parser.parse_args()


def make(options):
    layers = max(1, int(options.megabytes * 1e6 / (LAYER_BYTES if options.weights else 3 * LAYER_BYTES)))
    net = torch.nn.Sequential(*[torch.nn.Linear(WIDTH, WIDTH) for _ in range(layers)])
    return net, None if options.weights else torch.optim.AdamW(net.parameters())


def state_of(net, optimizer):
    model = {"model": net.state_dict()}
    return model if optimizer is None else model | {"optimizer": optimizer.state_dict()}


def save(net, optimizer, path):
    temporary = path + ".tmp"
    with open(temporary, "wb") as file:
        torch.save(state_of(net, optimizer), file)
        file.flush()
        os.fsync(file.fileno())
    os.rename(temporary, path)


def load(net, optimizer, path):
    saved = torch.load(path, weights_only=True)
    net.load_state_dict(saved["model"])
    if optimizer is not None:
        optimizer.load_state_dict(saved["optimizer"])


def timed(act, *words):
    start = time.perf_counter()
    act(*words)
    return time.perf_counter() - start


def main():
    options = arguments()
    path = os.path.join(options.folder, f"torch-bench-{os.getpid()}.pt")
    net, optimizer = make(options)
    if optimizer is not None:
        for parameter in net.parameters():
            parameter.grad = torch.full_like(parameter, 0.01)
        optimizer.step()
        optimizer.zero_grad()
    written, loaded = [], []
    try:
        for _ in range(options.rounds):
            written.append(timed(save, net, optimizer, path))
            others = make(options)
            if options.cold:
                with open(path, "rb") as file:
                    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            loaded.append(timed(load, *others, path))
        size = os.path.getsize(path)
    finally:
        os.unlink(path)
    print(
        json.dumps(
            {
                "bytes": size,
                "cold": options.cold,
                "write_seconds": statistics.median(written),
                "load_seconds": statistics.median(loaded),
            }
        )
    )


main()
