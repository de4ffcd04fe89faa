"""A decoder with rotary positions, and its gradients."""

import torch
from prelude import filled, show, trained
from x_transformers import Decoder, TransformerWrapper

layers = Decoder(dim=32, depth=1, heads=2, attn_dim_head=16, rotary_pos_emb=True)
model = filled(TransformerWrapper(num_tokens=9, max_seq_len=8, attn_layers=layers))
show(*trained(model, model(torch.arange(8).reshape(2, 4))))
