"""An ordinary PyTorch program for torchrun: DistributedDataParallel over Gloo, and a sum that all ranks know."""
import os
import sys

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
# The process ends without the interpreter's own end: PyTorch 2.11 leaves Gloo's threads with tensors behind, and one that
# frees a tensor while the interpreter ends aborts the process (one run in five under torchrun, too).
sys.stdout.flush()
os._exit(0)
