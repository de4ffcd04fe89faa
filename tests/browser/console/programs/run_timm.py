"""ResNet-18 and MobileNetV3, with gradients."""

import timm
from prelude import filled, image, show, trained

found = []
for name in ("resnet18", "mobilenetv3_small_100"):
    model = filled(timm.create_model(name))
    found += trained(model, model(image(1, 3, 64, 64)))
show(*found)
