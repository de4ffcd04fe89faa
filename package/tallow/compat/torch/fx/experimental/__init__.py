"""torch.fx.experimental: graphs with unknown sizes. Sizes are known here."""
