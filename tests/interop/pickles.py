#!/usr/bin/env python3
"""Files of every kind that torch.save writes, for lockstep to read; and what torch.load sees in lockstep's.

pickles.py write FOLDER           writes NAME.pt, each with NAME.expected.json: values by their paths, hashes of tensors
pickles.py refused FOLDER         writes NAME.pt that lockstep refuses, or reads but for an object of an unknown class
pickles.py read FILE…             prints the same description of what torch.load(weights_only=True) finds in each file
pickles.py unpickle FILE…         the same of what Python and numpy find in Paddle's files, as paddle.load opens them"""
import argparse
import collections
import ctypes
import hashlib
import json
import pickle
import sys
from pathlib import Path

import numpy
import torch
from torch import nn
from torch.nn import functional


class Normed(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(4)
        self.fc = nn.Linear(4 * 8 * 8, 3)

    def forward(self, x):
        return self.fc(functional.relu(self.bn(self.conv(x))).flatten(1))


class Hyper:
    """A class that no reader knows, as Lightning's callbacks and hyper-parameters are."""

    def __init__(self):
        self.depth = 3


class Tagged(torch.Tensor):
    """A tensor subclass."""


def described(value, path=''):
    if isinstance(value, numpy.ndarray):
        data = numpy.ascontiguousarray(value).tobytes()
        return {path: {'dtype': str(value.dtype), 'shape': list(value.shape), 'sha256': hashlib.sha256(data).hexdigest()}}
    if isinstance(value, torch.Tensor):
        plain = value.detach().contiguous()
        data = ctypes.string_at(plain.data_ptr(), plain.numel() * plain.element_size()) if plain.numel() else b''
        return {path: {'dtype': str(value.dtype).removeprefix('torch.'), 'shape': list(value.shape),
                       'sha256': hashlib.sha256(data).hexdigest()}}
    if isinstance(value, (dict, list, tuple)):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        found = {}
        for key, item in items:
            found |= described(item, f'{path}/{key}' if path else str(key))
        return found
    if isinstance(value, Hyper):
        return {path: {'opaque': '__main__.Hyper'}}
    if isinstance(value, argparse.Namespace):
        return {path: {'opaque': 'argparse.Namespace'}}
    if isinstance(value, (bytes, bytearray)):
        return {path: {'value': value.hex()}}
    if isinstance(value, (torch.dtype, torch.device)):
        return {path: {'value': str(value)}}
    return {path: {'value': value.item() if isinstance(value, numpy.generic) else value}}


def trained(make_optimizer):
    torch.manual_seed(3)
    net, scaler = Normed(), torch.amp.GradScaler('cpu')
    optimizer = make_optimizer(net.parameters())
    for step in range(2):
        optimizer.zero_grad()
        loss = functional.cross_entropy(net(torch.linspace(0, 1, 256).reshape(4, 1, 8, 8) * (step + 1)), torch.arange(4) % 3)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    return net, {'model': net.state_dict(), 'optimizer': optimizer.state_dict(), 'scaler': scaler.state_dict(), 'epoch': 4,
                 'amp': None, 'best': 0.5, 'lr': [0.1, 0.01], 'shape': (1, 2)}


def dtypes():
    """Tensors of every dtype that torch.save has a form for."""
    plain = ['float16', 'bfloat16', 'float32', 'float64', 'int8', 'uint8', 'int16', 'int32', 'int64', 'bool', 'uint16', 'uint32',
             'uint64', 'complex32', 'complex64', 'complex128']
    found = {name: torch.tensor([0, 1, 2, 3, 100]).to(getattr(torch, name)) for name in plain}
    for name in ['float8_e5m2', 'float8_e4m3fn', 'float8_e5m2fnuz', 'float8_e4m3fnuz', 'float8_e8m0fnu', 'float4_e2m1fn_x2', 'bits8',
                 'bits1x8', 'bits2x4', 'bits4x2', 'bits16']:
        found[name] = torch.arange(16, dtype=torch.uint8).view(getattr(torch, name))
    return found


def values():
    net, adam = trained(lambda p: torch.optim.Adam(p, lr=1e-3, amsgrad=True))
    whole = torch.arange(24, dtype=torch.float32)
    tagged = nn.Parameter(torch.ones(2))
    tagged.group = 'head'
    attributed = torch.ones(3)
    attributed.note = 'mean'
    return {
        'adam': adam,
        'adamw': trained(lambda p: torch.optim.AdamW(p, lr=1e-3))[1],
        'sgd': trained(lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True))[1],
        'dtypes': dtypes(),
        'parameters': {'named': dict(net.named_parameters()), 'tagged': tagged, 'attributed': attributed},
        'views': {'a': whole[:6], 'b': whole.reshape(4, 6).t(), 'c': whole[2:12:2], 'whole': whole, 'scalar': torch.tensor(3.5),
                  'empty': torch.zeros(0, 3), 'expanded': torch.ones(1).expand(3),
                  'channels_last': torch.arange(48.).reshape(2, 3, 2, 4).contiguous(memory_format=torch.channels_last)},
        'plain': {'none': None, 'yes': True, 'text': 'naïve', 'bytes': b'\x00\x80\xff', 'numbers': [0, -1, 255, 65536, 1 << 62, -(1 << 40)],
                  'float': 1e-8, 'nested': {'a': [(1, [2, {'b': 3}])]}, 'size': torch.Size([2, 3]), 'dtype': torch.float16,
                  'device': torch.device('cpu'), 5: 'five', 'counter': collections.Counter('aab'), 'array': bytearray(b'ab'),
                  'default': collections.defaultdict(list, {'a': [1]}), 'ordered': collections.OrderedDict(a=1)},
        'numpy': {'scalars': [numpy.float64(0.5), numpy.float32(2), numpy.int64(-3), numpy.bool_(True), numpy.float16(1.5)],
                  'matrix': numpy.arange(6, dtype='f4').reshape(2, 3), 'fortran': numpy.asfortranarray(numpy.eye(3)),
                  'empty': numpy.zeros((0, 3)), 'random': numpy.random.RandomState(1).get_state(), 'loss': numpy.float64(0.25)},
    }


def write(folder):
    for name, value in values().items():
        for protocol in (2, 3, 4, 5):
            for form in ('zip', 'legacy'):
                path = folder / f'{name}_{form}{protocol}.pt'
                torch.save(value, path, pickle_protocol=protocol, _use_new_zipfile_serialization=form == 'zip')
                path.with_suffix('.expected.json').write_text(json.dumps(described(value)))


def refused(folder):
    indices, scale = torch.tensor([[0, 1], [1, 0]]), 0.1
    for name, value in {'sparse': torch.sparse_coo_tensor(indices, torch.ones(2), (2, 2)),
                        'quantized': torch.quantize_per_tensor(torch.ones(2), scale, 0, torch.qint8),
                        'meta': torch.empty(2, device='meta'),
                        'nested': torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
                        'subclass': torch.ones(2).as_subclass(Tagged),
                        'conjugate': torch.ones(2, dtype=torch.complex64).conj()}.items():
        torch.save({'w': value}, folder / f'{name}.pt')
    # As Lightning's and timm's.
    for protocol in (2, 3, 4, 5):
        value = {'state_dict': {'fc.weight': torch.ones(2, 2)}, 'args': argparse.Namespace(lr=0.1, path=Path('a')), 'epoch': 3,
                 'hyper_parameters': {'depth': 3, 'object': Hyper(), 'class': Hyper}, 'callbacks': {'a': {'best': torch.tensor(2.5)}}}
        path = folder / f'unknown{protocol}.pt'
        torch.save(value, path, pickle_protocol=protocol)
        value['hyper_parameters']['class'] = Hyper()
        path.with_suffix('.expected.json').write_text(json.dumps(described(value)))


def main():
    if sys.argv[1:2] == ['write']:
        write(Path(sys.argv[2]))
    elif sys.argv[1:2] == ['refused']:
        refused(Path(sys.argv[2]))
    elif sys.argv[1:2] == ['read']:
        print(json.dumps({file: described(torch.load(file, weights_only=True)) for file in sys.argv[2:]}))
    elif sys.argv[1:2] == ['unpickle']:
        print(json.dumps({file: described(pickle.loads(Path(file).read_bytes(), encoding='latin1')) for file in sys.argv[2:]}))
    else:
        sys.exit(__doc__)


if __name__ == '__main__':
    main()
