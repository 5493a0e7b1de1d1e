"""An ordinary PyTorch program for torchrun: DistributedDataParallel over Gloo, and a sum that all ranks know."""
import os

import torch
import torch.distributed as dist

dist.init_process_group('gloo')
torch.manual_seed(dist.get_rank())
net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
net(torch.full((2, 4), float(dist.get_rank()))).sum().backward()
total = torch.tensor(float(dist.get_rank() + 1))
dist.all_reduce(total)
gradient = net.module.weight.grad[0, 0].item()
print(f'rank {dist.get_rank()} of {dist.get_world_size()}, local {os.environ["LOCAL_RANK"]}: {total.item()} {gradient}')
dist.destroy_process_group()
