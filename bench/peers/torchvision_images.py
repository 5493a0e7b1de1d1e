"""torchvision's ImageFolder and transforms, loaded by PyTorch's DataLoader with worker processes."""

import os
import pathlib

import image_rounds
import torch
from torch.utils.data import DataLoader, Sampler
from torchvision import datasets, transforms


class Endless(Sampler):
    """Epoch after epoch in random order, so that no epoch's end keeps the workers waiting."""

    def __init__(self, size):
        self._size = size

    def __iter__(self):
        while True:
            yield from torch.randperm(self._size).tolist()


def cpu_seconds(pids):
    ticks = 0
    for pid in pids:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        ticks += int(fields[11]) + int(fields[12])  # utime, stime
    return ticks / os.sysconf("SC_CLK_TCK")


def main():
    options = image_rounds.arguments(__doc__)
    torch.set_num_threads(1)
    steps = [
        transforms.RandomResizedCrop(options.size),
        transforms.RandomHorizontalFlip(),
        transforms.ToTensor(),
        transforms.Normalize(image_rounds.MEAN, image_rounds.STD),
    ]
    images = datasets.ImageFolder(options.folder, transforms.Compose(steps))
    loader = DataLoader(
        images, batch_size=options.batch_size, sampler=Endless(len(images)), num_workers=options.threads
    )
    batches = iter(loader)
    children = [int(pid) for task in pathlib.Path("/proc/self/task").glob("*/children") for pid in task.read_text().split()]
    processes = [os.getpid(), *children]
    image_rounds.report(lambda: len(next(batches)[1]), lambda: cpu_seconds(processes), options.seconds)


main()
