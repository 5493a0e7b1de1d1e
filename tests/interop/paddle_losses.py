"""An ordinary Paddle training for paddle.distributed.launch: DataParallel on the CPU. Rank 0 prints each loss."""
import paddle
import paddle.distributed as dist

dist.init_parallel_env()
paddle.seed(7)
net = paddle.nn.Sequential(paddle.nn.Linear(8, 16), paddle.nn.ReLU(), paddle.nn.Linear(16, 2))
model = paddle.DataParallel(net)
optimizer = paddle.optimizer.SGD(learning_rate=0.1, parameters=model.parameters())
rank, size = dist.get_rank(), dist.get_world_size()
images = paddle.to_tensor([[((31 * i + 7 * k) % 17) / 8 - 1 for k in range(8)] for i in range(32)], dtype='float32')
labels = (images.sum(axis=1) > 0).astype('int64')
for step in range(6):
    mine = range(rank, 32, size)
    index = paddle.to_tensor(list(mine))
    loss = paddle.nn.functional.cross_entropy(model(paddle.gather(images, index)), paddle.gather(labels, index))
    loss.backward()
    optimizer.step()
    optimizer.clear_grad()
    total = loss.detach().clone()
    dist.all_reduce(total)
    if rank == 0:
        print(f'loss {float(total)!r}', flush=True)
print(f'rank {rank} of {size}', flush=True)
