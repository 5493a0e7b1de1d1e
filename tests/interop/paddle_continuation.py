"""A training in Paddle that stops and goes on. The batches are those of paddle_continuation_test.cc.

paddle_continuation.py begin FOLDER ADAM|MOMENTUM|ADAGRAD  trains 5 steps, saves net.pdparams and net.pdopt, and goes on
paddle_continuation.py go-on FOLDER OPTIMIZER              goes on from these files
Both print the losses of 20 further steps."""
import json
import sys

import paddle
from paddle import nn

FIRST, FURTHER, ROWS = 5, 20, 16


def batch(step):
    rows = range(step * ROWS, (step + 1) * ROWS)
    inputs = paddle.to_tensor([[((31 * i + 7 * k) % 17) / 8 - 1 for k in range(8)] for i in rows], dtype='float32')
    return inputs, paddle.to_tensor([i * 5 % 4 for i in rows])


def main():
    what, folder, name = sys.argv[1:]
    paddle.seed(3)
    net = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1D(16), nn.ReLU(), nn.Linear(16, 4))
    optimizer = {
        'adam': lambda p: paddle.optimizer.Adam(learning_rate=0.01, parameters=p),
        'momentum': lambda p: paddle.optimizer.Momentum(learning_rate=0.05, momentum=0.9, parameters=p),
        'adagrad': lambda p: paddle.optimizer.Adagrad(learning_rate=0.05, parameters=p),
    }[name](net.parameters())

    def trained(steps):
        losses = []
        for step in steps:
            inputs, labels = batch(step)
            loss = nn.functional.cross_entropy(net(inputs), labels)
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            losses.append(float(loss))
        return losses

    if what == 'begin':
        trained(range(FIRST))
        paddle.save(net.state_dict(), f'{folder}/net.pdparams')
        paddle.save(optimizer.state_dict(), f'{folder}/net.pdopt')
    else:
        net.set_state_dict(paddle.load(f'{folder}/net.pdparams'))
        optimizer.set_state_dict(paddle.load(f'{folder}/net.pdopt'))
    print(json.dumps(trained(range(FIRST, FIRST + FURTHER))))


if __name__ == '__main__':
    main()
