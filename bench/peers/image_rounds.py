"""What the image peers share: their options, and how batches are timed, as `lockstep bench data` times its own."""

import argparse
import json
import statistics
import time

ROUNDS = 5
WARMUP = 10  # batches
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def arguments(description):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("folder", help="a folder of class folders")
    parser.add_argument("--size", type=int, default=224, help="pixels a side")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=5, help="of measuring, in five rounds")
    return parser.parse_args()


def report(take, cpu_seconds, seconds):
    """Calls take(), which returns the images of the next batch, and prints the figures as one line of JSON."""
    for _ in range(WARMUP):
        take()
    rates, total, cpu = [], 0, cpu_seconds()
    for _ in range(ROUNDS):
        images, start = 0, time.perf_counter()
        while time.perf_counter() - start < seconds / ROUNDS:
            images += take()
        rates.append(images / (time.perf_counter() - start))
        total += images
    cpu_us = (cpu_seconds() - cpu) * 1e6 / total
    print(json.dumps({"images_per_second": statistics.median(rates), "cpu_us": cpu_us, "rounds": rates}), flush=True)
