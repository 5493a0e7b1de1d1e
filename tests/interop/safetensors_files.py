"""Compares our files with those of PyTorch and the safetensors library. Usage:
safetensors_files.py rewrite FILE                       the library writes what it reads in FILE as the same bytes
safetensors_files.py write FOLDER                       files for us to read, and what they hold as expected.pt
safetensors_files.py load NETWORK ORIGINAL SAFETENSORS PT   torchvision's network takes both; ORIGINAL has "module." names"""
import json
import sys
from pathlib import Path

import torch
import torchvision
from safetensors import safe_open
from safetensors.torch import load_file, save_file


def rewrite(file):
    with safe_open(file, framework='pt') as opened:
        metadata = opened.metadata()
    again = f'{file}.again'
    save_file(load_file(file), again, metadata=metadata)
    if Path(file).read_bytes() != Path(again).read_bytes():
        sys.exit(f'{file}: the library writes other bytes')


def write(folder):
    torch.manual_seed(1)
    net = torchvision.models.mobilenet_v2(num_classes=3).half()
    tensors = {**net.state_dict(), 'float8': torch.rand(5).to(torch.float8_e4m3fn), 'none': torch.zeros(0, 4)}
    torch.save(tensors, folder / 'expected.pt')
    names = list(tensors)
    parts = {'a.safetensors': names[::2], 'b.safetensors': names[1::2]}
    for name in ('one', 'sharded'):
        (folder / name).mkdir()
    save_file(tensors, folder / 'one/model.safetensors', metadata={'format': 'pt'})
    for file, part in parts.items():
        save_file({name: tensors[name] for name in part}, folder / 'sharded' / file)
    index = {'metadata': {'total_size': 1}, 'weight_map': {name: file for file, part in parts.items() for name in part}}
    (folder / 'sharded/model.safetensors.index.json').write_text(json.dumps(index, indent=2))


def load(network, original, *converted):
    expected = torch.load(original, weights_only=True)['model']
    for file in converted:
        state = load_file(file) if file.endswith('.safetensors') else torch.load(file, weights_only=True)
        getattr(torchvision.models, network)().load_state_dict(state, strict=True)
        for name, tensor in expected.items():
            if not torch.equal(state[name.removeprefix('module.')], tensor):
                sys.exit(f'{file}: {name} differs')


command, *words = sys.argv[1:]
{'rewrite': rewrite, 'write': lambda folder: write(Path(folder)), 'load': load}[command](*words)
