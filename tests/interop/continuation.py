"""Goes on with a training that Lockstep began, and begins one that it goes on with.
Usage: continuation.py go-on FILE         from FILE's model and optimizer, over its batches; prints the losses as JSON
       continuation.py begin FILE OUT     steps over FILE's first batches, saves {model, optimizer} to OUT, and goes on;
                                          prints the losses after OUT
FILE has net, optimizer_class, options, images, labels, first (steps before the checkpoint), and model and optimizer."""
import json
import sys
from pathlib import Path

import torch
import torchvision

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / 'bench/peers'))
import networks

MAKE = {'lenet': networks.LeNet, 'resnet18': lambda: torchvision.models.resnet18(num_classes=10),
        'resnet34': lambda: torchvision.models.resnet34(num_classes=10),
        'resnet50': lambda: torchvision.models.resnet50(num_classes=10),
        'resnet101': lambda: torchvision.models.resnet101(num_classes=10),
        'resnet152': lambda: torchvision.models.resnet152(num_classes=10),
        'alexnet': lambda: torchvision.models.alexnet(num_classes=10, dropout=0.0),
        'mobilenet_v2': lambda: torchvision.models.mobilenet_v2(num_classes=10, dropout=0.0),
        'shufflenet_v2': lambda: torchvision.models.shufflenet_v2_x1_0(num_classes=10),
        'unet': lambda: networks.UNet(classes=10, width=8),
        'unet_bilinear': lambda: networks.UNet(classes=10, width=8, bilinear=True)}


def trained(net, optimizer, saved, first, last):
    for step in range(first, last):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(saved['images'][step]), saved['labels'][step])
        loss.backward()
        optimizer.step()
        yield loss.item()


torch.set_num_threads(1)
saved = torch.load(sys.argv[2], weights_only=True)
net = MAKE[saved['net']]().to(saved['images'].dtype)
net.load_state_dict(saved['model'], strict=True)
net.train()
optimizer = getattr(torch.optim, saved['optimizer_class'])(net.parameters(), **saved['options'])
if sys.argv[1] == 'go-on':
    optimizer.load_state_dict(saved['optimizer'])
else:
    list(trained(net, optimizer, saved, 0, saved['first']))
    torch.save({'model': net.state_dict(), 'optimizer': optimizer.state_dict()}, sys.argv[3])
print(json.dumps(list(trained(net, optimizer, saved, saved['first'], len(saved['images'])))))
