"""Transforms, `box_iou`, a ResNet."""

import torch
from prelude import filled, image, show
from torchvision import models, ops, transforms

x = image(1, 3, 64, 64)
small = transforms.Compose([transforms.Resize(32), transforms.CenterCrop(24), transforms.Normalize(0.5, 0.2)])
boxes = torch.tensor([[0.0, 0.0, 8.0, 8.0], [1.0, 1.0, 8.0, 8.0], [4.0, 4.0, 16.0, 16.0]])
show(small(x), ops.box_iou(boxes, boxes), filled(models.resnet18())(x))
