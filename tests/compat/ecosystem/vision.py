"""Cases of packages for images."""

from __future__ import annotations

from typing import Any

import numpy as np
from comparison import case, filled, normal, trained


@case
def torchvision__segmentation(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """Segmentation by LR-ASPP on MobileNetV3."""
    from torchvision.models.segmentation import lraspp_mobilenet_v3_large

    model = filled(torch, lraspp_mobilenet_v3_large(weights=None, weights_backbone=None), rng)
    x = normal(torch, rng, 1, 3, 64, 64)
    return trained(torch, model, lambda: model(x)["out"], 1e-4)


@case
def torchvision__transformer(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """A vision transformer."""
    from torchvision.models import VisionTransformer

    model = VisionTransformer(image_size=32, patch_size=8, num_layers=2, num_heads=2, hidden_dim=32, mlp_dim=64)
    model, x = filled(torch, model, rng), normal(torch, rng, 2, 3, 32, 32)
    return trained(torch, model, lambda: model(x))


@case
def timm__families(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """All of timm's test models: ResNet, ViT, ConvNeXt, EfficientNet, NFNet and others."""
    import timm

    found: list[Any] = []
    for name in timm.list_models("test_*"):
        model = filled(torch, timm.create_model(name), rng)
        x = normal(torch, rng, 1, *model.default_cfg["input_size"])
        found += trained(torch, model, lambda model=model, x=x: model(x), 1e-5)[:-1]  # type: ignore[misc]
    return found


@case
def vit_pytorch(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """ViT and SimpleViT."""
    from vit_pytorch import SimpleViT, ViT

    found: list[Any] = []
    for kind in (ViT, SimpleViT):
        model = kind(image_size=32, patch_size=8, num_classes=5, dim=32, depth=2, heads=2, mlp_dim=64)
        model, x = filled(torch, model, rng), normal(torch, rng, 2, 3, 32, 32)
        found += trained(torch, model, lambda model=model, x=x: model(x))  # type: ignore[misc]
    return found


@case
def denoising_diffusion_pytorch(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """The U-Net, and the loss of Gaussian diffusion at a given step and noise."""
    from denoising_diffusion_pytorch import GaussianDiffusion, Unet

    model = filled(torch, Unet(dim=16, dim_mults=(1, 2), flash_attn=False, attn_dim_head=8), rng)
    diffusion = GaussianDiffusion(model, image_size=16, timesteps=10, auto_normalize=False)
    x, noise, t = normal(torch, rng, 2, 3, 16, 16), normal(torch, rng, 2, 3, 16, 16), torch.tensor([2, 7])
    return trained(torch, model, lambda: diffusion.p_losses(x, t, noise=noise), 1e-3)


@case
def segment_anything(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """The image encoder, and the mask decoder with its prompts."""
    from segment_anything.modeling import ImageEncoderViT, MaskDecoder, PromptEncoder, TwoWayTransformer

    image = ImageEncoderViT(64, 16, embed_dim=32, depth=2, num_heads=2, out_chans=16, use_rel_pos=True, window_size=2)
    prompt = PromptEncoder(16, (4, 4), (64, 64), mask_in_chans=4)
    layers = TwoWayTransformer(depth=2, embedding_dim=16, mlp_dim=32, num_heads=2)
    decoder = MaskDecoder(transformer_dim=16, transformer=layers)
    model = filled(torch, torch.nn.ModuleList([image, prompt, decoder]), rng)
    x, points = normal(torch, rng, 1, 3, 64, 64), (torch.tensor([[[20.0, 30.0]]]), torch.tensor([[1]]))

    def masks() -> Any:
        sparse, dense = prompt(points=points, boxes=None, masks=None)
        return decoder(image(x), prompt.get_dense_pe(), sparse, dense, multimask_output=True)[0]

    return trained(torch, model, masks)


@case
def lpips(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """The perceptual distance of two images by AlexNet."""
    import lpips

    model = filled(torch, lpips.LPIPS(net="alex", pretrained=False, pnet_rand=True, verbose=False), rng)
    x, y = normal(torch, rng, 1, 3, 64, 64), normal(torch, rng, 1, 3, 64, 64)
    return trained(torch, model, lambda: model(x, y), 1e-3)


@case
def efficientnet_pytorch(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """EfficientNet-B0."""
    from efficientnet_pytorch import EfficientNet

    model = filled(torch, EfficientNet.from_name("efficientnet-b0"), rng)
    x = normal(torch, rng, 1, 3, 64, 64)
    return trained(torch, model, lambda: model(x), 1e-4)


@case
def segmentation_models_pytorch(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """U-Net, FPN and DeepLabV3+ on ResNet-18."""
    import segmentation_models_pytorch as smp

    found: list[Any] = []
    for kind in (smp.Unet, smp.FPN, smp.DeepLabV3Plus):
        model = filled(torch, kind("resnet18", encoder_weights=None, classes=2), rng)
        x = normal(torch, rng, 1, 3, 64, 64)
        found += trained(torch, model, lambda model=model, x=x: model(x), 1e-5)[:-1]  # type: ignore[misc]
    return found


@case
def ultralytics(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """YOLOv8n and YOLO11n."""
    from ultralytics.nn.tasks import DetectionModel

    found: list[Any] = []
    for name in ("yolov8n.yaml", "yolo11n.yaml"):
        model = filled(torch, DetectionModel(name, verbose=False), rng)
        for parameter in model.parameters():
            parameter.requires_grad_()
        x = normal(torch, rng, 1, 3, 64, 64)
        found += trained(torch, model, lambda model=model, x=x: model(x)[0], 1e-9)[:-1]  # type: ignore[misc]
    return found


@case
def kornia(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """Filters, colors, a warp and a metric, with the gradient of the image."""
    import kornia as K

    x = torch.from_numpy(rng.rand(2, 3, 24, 24).astype("float32")).requires_grad_()
    corners = torch.tensor([[[1.0, 0.1, 2.0], [-0.1, 0.9, 1.0], [0.001, 0.0, 1.0]]]).expand(2, 3, 3)
    parts = [
        K.filters.gaussian_blur2d(x, (5, 5), (1.5, 1.5)),
        K.filters.sobel(x),
        K.filters.bilateral_blur(x, 3, 0.1, (1.0, 1.0)),
        K.color.rgb_to_hsv(x),
        K.color.rgb_to_lab(x),
        K.geometry.warp_perspective(x, corners, (20, 20)),
        K.geometry.rotate(x, torch.tensor([30.0, -20.0])),
        K.metrics.ssim(x, x.detach().flip(-1), 5),
        K.enhance.equalize_clahe(x.detach()),
        K.morphology.dilation(x, torch.ones(3, 3)),
    ]
    sum(part.square().mean() for part in parts).backward()
    return [*parts, x.grad]


@case
def monai(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """A U-Net in three dimensions with the Dice loss."""
    from monai.losses import DiceLoss
    from monai.networks.nets import UNet

    model = UNet(spatial_dims=3, in_channels=1, out_channels=2, channels=(4, 8, 16), strides=(2, 2), num_res_units=1)
    model, x = filled(torch, model, rng), normal(torch, rng, 1, 1, 16, 16, 16)
    labels = torch.from_numpy(rng.randint(0, 2, (1, 1, 16, 16, 16)))
    loss = DiceLoss(to_onehot_y=True, softmax=True)
    return trained(torch, model, lambda: loss(model(x), labels))


@case
def open_clip(torch: Any, rng: np.random.RandomState) -> list[Any]:
    """A small CLIP with its contrastive loss."""
    from open_clip import ClipLoss
    from open_clip.model import CLIP, CLIPTextCfg, CLIPVisionCfg

    vision = CLIPVisionCfg(layers=2, width=32, head_width=16, patch_size=8, image_size=32)
    text = CLIPTextCfg(context_length=16, vocab_size=50, width=32, heads=2, layers=2)
    model = filled(torch, CLIP(24, vision, text), rng)
    x, words, loss = normal(torch, rng, 3, 3, 32, 32), torch.from_numpy(rng.randint(0, 50, (3, 16))), ClipLoss()
    return trained(torch, model, lambda: loss(*model(x, words)))
