"""An ordinary PyTorch training for torchrun: DistributedDataParallel, a DistributedSampler, SGD. Rank 0 prints each loss."""
import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

dist.init_process_group('gloo')
torch.manual_seed(7)
torch.set_num_threads(1)
images = torch.randn(96, 1, 8, 8)
labels = images.sum((1, 2, 3)).gt(0).long()
net = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(144, 2))
model = DistributedDataParallel(net)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
data = TensorDataset(images, labels)
sampler = DistributedSampler(data, seed=3)
for epoch in range(3):
    sampler.set_epoch(epoch)
    for batch, target in DataLoader(data, batch_size=8, sampler=sampler):
        loss = torch.nn.functional.cross_entropy(model(batch), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total = loss.detach().clone()
        dist.all_reduce(total)
        if dist.get_rank() == 0:
            print(f'loss {total.item()!r}')
dist.destroy_process_group()
# As in ddp.py: PyTorch's Gloo may abort while the interpreter ends.
sys.stdout.flush()
os._exit(0)
