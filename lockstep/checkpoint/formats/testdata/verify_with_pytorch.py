#!/usr/bin/env python3
"""Prints what is in a .pt file as PyTorch reads it with weights_only=True: the JSON of `lockstep inspect FILE --json`.
With --write FILE it writes, with PyTorch, a file for the reader's tests instead (--legacy: in the form before 1.6)."""
import hashlib
import json
import sys
from collections import OrderedDict

try:
    import torch
except ImportError as error:
    print(f'no PyTorch here: {error}', file=sys.stderr)
    sys.exit(77)


def leaves(value, path=()):
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, (*path, str(key)))
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from leaves(item, (*path, str(index)))
    else:
        yield '/'.join(path), value


def described(value):
    if isinstance(value, torch.Tensor):
        content = value.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes() if value.numel() else b''
        return {'dtype': str(value.dtype).removeprefix('torch.'), 'shape': list(value.shape),
                'sha256': hashlib.sha256(content).hexdigest()}
    return {'value': value.hex() if isinstance(value, bytes) else value}


def example(legacy):
    whole = torch.arange(24, dtype=torch.float32)
    state = OrderedDict(weight=torch.tensor([[1.0, -2.0], [0.5, 3.25]]), bias=torch.tensor([0.125, 7.0]))
    state._metadata = OrderedDict({'': {'version': 1}})
    return {
        'model': state,
        'optimizer': {'state': {0: {'momentum_buffer': torch.ones(2, 2)}},
                      'param_groups': [{'lr': 0.1, 'betas': (0.9, 0.999), 'fused': None, 'params': [0, 1]}]},
        'whole': whole, 'transposed': whole[4:].view(4, 5).t(), 'channels_last':
            torch.arange(48, dtype=torch.float16).reshape(2, 3, 2, 4).to(memory_format=torch.channels_last),
        'bfloat16': torch.tensor([1.5, -3.0], dtype=torch.bfloat16), 'uint16':
            torch.tensor([1, 255], dtype=torch.uint8 if legacy else torch.uint16),  # PyTorch can't read its own legacy one
        'flags': torch.tensor([True, False]), 'scalar': torch.tensor(5), 'empty': torch.zeros(0, 3),
        'parameter': torch.nn.Parameter(torch.tensor([4.0])), 'expanded': torch.tensor([2.0]).expand(3),
        'size': torch.Size([2, 3]), 'epoch': 4, 'huge': -2**62, 'small': -1, 'note': 'naïve', 'nothing': None,
        'best': True, 'bytes': b'\x00\x80\xff', 'list': [1, [2.5, {}], ()],
    }


def main():
    if sys.argv[1] == '--write':
        legacy = '--legacy' in sys.argv
        torch.save(example(legacy), sys.argv[2], _use_new_zipfile_serialization=not legacy)
        return
    value = torch.load(sys.argv[1], weights_only=True, map_location='cpu')
    print(json.dumps({path: described(leaf) for path, leaf in leaves(value)}, indent=1, ensure_ascii=False))


main()
