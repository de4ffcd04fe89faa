"""A small `UNet2DModel` with gradients, four steps of DDIM."""

import torch
from diffusers import DDIMScheduler, UNet2DModel
from prelude import filled, image, show, trained

model = filled(
    UNet2DModel(
        sample_size=16,
        layers_per_block=1,
        block_out_channels=(8, 16),
        norm_num_groups=4,
        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"),
    )
)
scheduler, x = DDIMScheduler(), image(1, 3, 16, 16)
scheduler.set_timesteps(4)
with torch.no_grad():
    for time in scheduler.timesteps:
        x = scheduler.step(model(x, time).sample, time, x).prev_sample
show(x, *trained(model, model(image(1, 3, 16, 16), 5).sample))
