"""Loads weights that Lockstep saved into the networks of torchvision and Pytorch-UNet, and compares what they compute; or
makes such a file of a network's own weights.
Usage: networks.py FILE…            (each has name, model, images, output)
       networks.py make NAME FILE   writes one"""
import sys
from pathlib import Path

import torch
import torchvision

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / 'bench/peers'))
import networks

MAKE = {'resnet18': torchvision.models.resnet18, 'resnet34': torchvision.models.resnet34,
        'resnet50': torchvision.models.resnet50, 'resnet101': torchvision.models.resnet101,
        'resnet152': torchvision.models.resnet152, 'mobilenet_v2': torchvision.models.mobilenet_v2,
        'shufflenet_v2': torchvision.models.shufflenet_v2_x1_0, 'alexnet': torchvision.models.alexnet,
        'unet': networks.UNet, 'unet_bilinear': lambda: networks.UNet(bilinear=True), 'lenet': networks.LeNet}

def make(name, file):
    torch.manual_seed(3)
    images = torch.rand(2, 1, 28, 28) if name == 'lenet' else torch.rand(2, 3, 64, 64)
    net = MAKE[name]()
    with torch.no_grad():
        net(images)  # statistics that are not those of a fresh network
        output = net.eval()(images)
    torch.save({'name': name, 'model': net.state_dict(), 'images': images, 'output': output}, file)


if sys.argv[1] == 'make':
    make(*sys.argv[2:])
    sys.exit()
for file in sys.argv[1:]:
    saved = torch.load(file, weights_only=True)
    net = MAKE[saved['name']]()
    net.load_state_dict(saved['model'], strict=True)
    with torch.no_grad():
        output = net.eval()(saved['images'])
    distance = ((output - saved['output']).norm() / output.norm()).item()
    print(f"{saved['name']}: {distance:.1e}")
    if not distance < 1e-5:
        sys.exit(f'{file}: outputs differ by {distance} of their norm')
