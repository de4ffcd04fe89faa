"""Layers of Keras: a line is a layer's name, its arguments, and the shapes of its inputs."""

from __future__ import annotations

from typing import Any

VECTORS = (4, 6)
STEPS = (3, 7, 4)
IMAGES = (2, 9, 8, 4)
VOLUMES = (2, 5, 4, 6, 4)

# A layer's name, its arguments, and the shapes of its inputs.
CASES: list[tuple[str, dict[str, Any], list[tuple[int, ...]]]] = [
    ("Dense", {"units": 5, "activation": "relu"}, [VECTORS]),
    ("Dense", {"units": 5, "use_bias": False}, [STEPS]),
    *[("Conv1D", {"filters": 6, "kernel_size": 3, "padding": p, "strides": s}, [STEPS])
      for p in ("valid", "same", "causal") for s in (1, 2)],
    ("Conv1D", {"filters": 6, "kernel_size": 2, "dilation_rate": 2, "padding": "causal"}, [STEPS]),
    ("Conv1D", {"filters": 6, "kernel_size": 4, "groups": 2, "padding": "same", "activation": "softmax"}, [STEPS]),
    *[("Conv2D", {"filters": 6, "kernel_size": k, "padding": p, "strides": s}, [IMAGES])
      for k in (3, (2, 4)) for p in ("valid", "same") for s in (1, 2, (3, 2))],
    ("Conv2D", {"filters": 6, "kernel_size": 3, "dilation_rate": 2, "padding": "same"}, [IMAGES]),
    ("Conv2D", {"filters": 6, "kernel_size": 3, "groups": 2, "activation": "tanh"}, [IMAGES]),
    *[("DepthwiseConv2D", {"kernel_size": 3, "padding": p, "strides": s, "depth_multiplier": m}, [IMAGES])
      for p in ("valid", "same") for s in (1, 2) for m in (1, 2)],
    ("SeparableConv2D", {"filters": 5, "kernel_size": 3, "padding": "same", "depth_multiplier": 2}, [IMAGES]),
    *[("Conv3D", {"filters": 4, "kernel_size": (2, 3, 3), "padding": p, "strides": s}, [VOLUMES])
      for p in ("valid", "same") for s in (1, 2)],
    *[("Conv3DTranspose", {"filters": 3, "kernel_size": 3, "padding": p, "strides": 2}, [VOLUMES])
      for p in ("valid", "same")],
    ("DepthwiseConv1D", {"kernel_size": 3, "padding": "same", "strides": 2, "depth_multiplier": 2}, [STEPS]),
    ("SeparableConv1D", {"filters": 5, "kernel_size": 3, "padding": "same", "depth_multiplier": 2}, [STEPS]),
    *[("Conv2DTranspose", {"filters": 5, "kernel_size": k, "padding": p, "strides": s}, [IMAGES])
      for k in (2, 3, 5) for p in ("valid", "same") for s in (1, 2, 3)],
    *[("Conv2DTranspose", {"filters": 5, "kernel_size": k, "padding": p, "strides": 2, "output_padding": 1}, [IMAGES])
      for k in (3, 4) for p in ("valid", "same")],
    *[("Conv1DTranspose", {"filters": 5, "kernel_size": 3, "padding": p, "strides": 2}, [STEPS])
      for p in ("valid", "same")],
    *[("MaxPooling2D", {"pool_size": k, "padding": p, "strides": s}, [IMAGES])
      for k in (2, 3) for p in ("valid", "same") for s in (None, 1, 2)],
    # If padding is not symmetric, Keras on PyTorch repeats the edge; see tests/unit/keras/test_layers.
    *[("AveragePooling2D", {"pool_size": k, "padding": p, "strides": s}, [IMAGES])
      for k, p, s in ((2, "valid", None), (3, "valid", 2), (3, "same", 1))],
    *[(f"{kind}Pooling1D", {"pool_size": 3, "padding": p, "strides": s}, [STEPS])
      for kind in ("Max", "Average") for p in ("valid", "same") for s in (None, 2)],
    *[(f"Global{kind}Pooling{d}D", {"keepdims": k}, [STEPS if d == 1 else IMAGES])
      for kind in ("Max", "Average") for d in (1, 2) for k in (False, True)],
    ("MaxPooling3D", {"pool_size": 2, "padding": "same", "strides": 1}, [VOLUMES]),
    ("AveragePooling3D", {"pool_size": (2, 2, 3)}, [VOLUMES]),
    *[(f"Global{kind}Pooling3D", {"keepdims": k}, [VOLUMES]) for kind in ("Max", "Average") for k in (False, True)],
    *[(f"Adaptive{kind}Pooling{d}D", {"output_size": 3}, [shape])
      for kind in ("Max", "Average") for d, shape in ((1, STEPS), (2, IMAGES), (3, VOLUMES))],
    ("Flatten", {}, [IMAGES]),
    ("Reshape", {"target_shape": (2, -1)}, [IMAGES]),
    ("Permute", {"dims": (3, 1, 2)}, [IMAGES]),
    ("RepeatVector", {"n": 3}, [VECTORS]),
    ("ZeroPadding1D", {"padding": (1, 2)}, [STEPS]),
    ("ZeroPadding2D", {"padding": ((1, 0), (2, 3))}, [IMAGES]),
    ("Cropping1D", {"cropping": (1, 2)}, [STEPS]),
    ("Cropping2D", {"cropping": ((1, 0), (2, 3))}, [IMAGES]),
    ("ZeroPadding3D", {"padding": ((1, 0), (2, 3), (0, 1))}, [VOLUMES]),
    ("Cropping3D", {"cropping": ((1, 0), (2, 1), (0, 1))}, [VOLUMES]),
    ("UpSampling3D", {"size": (2, 1, 3)}, [VOLUMES]),
    ("UpSampling1D", {"size": 3}, [STEPS]),
    ("UpSampling2D", {"size": (2, 3)}, [IMAGES]),
    ("UpSampling2D", {"size": (2, 3), "interpolation": "bilinear"}, [IMAGES]),
    *[("BatchNormalization", {"axis": a, "scale": s}, [shape])
      for shape in (VECTORS, STEPS, IMAGES) for a in (-1, 1) for s in (True, False)],
    ("LayerNormalization", {}, [STEPS]),
    ("LayerNormalization", {"axis": [1, 2], "center": False}, [STEPS]),
    ("GroupNormalization", {"groups": 2}, [IMAGES]),
    ("GroupNormalization", {"groups": -1}, [IMAGES]),
    ("RMSNormalization", {}, [STEPS]),
    ("UnitNormalization", {}, [STEPS]),
    ("Rescaling", {"scale": 0.5, "offset": -1.0}, [IMAGES]),
    ("Normalization", {"mean": [1.0, 2.0, 3.0, 4.0], "variance": [1.0, 4.0, 9.0, 0.25]}, [STEPS]),
    ("Normalization", {"mean": 1.5, "variance": 4.0, "axis": None, "invert": True}, [STEPS]),
    *[("Activation", {"activation": a}, [STEPS]) for a in (
        "relu", "softmax", "elu", "selu", "softplus", "softsign", "sigmoid", "tanh", "exponential", "hard_sigmoid",
        "silu", "gelu", "linear", "mish", "log_softmax", "leaky_relu", "relu6", "celu", "hard_silu", "log_sigmoid",
        "swish", "hard_tanh", "tanh_shrink", "soft_shrink", "hard_shrink", "squareplus", "glu")],
    ("ReLU", {"max_value": 1.0, "negative_slope": 0.1, "threshold": 0.2}, [STEPS]),
    ("LeakyReLU", {}, [STEPS]),
    ("Softmax", {"axis": 1}, [STEPS]),
    ("Softmax", {"axis": (1, 2)}, [STEPS]),
    ("ELU", {"alpha": 0.5}, [STEPS]),
    ("PReLU", {"alpha_initializer": "glorot_uniform"}, [STEPS]),
    ("PReLU", {"shared_axes": [1, 2]}, [IMAGES]),
    *[(name, {}, [STEPS, STEPS, STEPS]) for name in ("Add", "Multiply", "Average", "Maximum", "Minimum")],
    ("Subtract", {}, [STEPS, STEPS]),
    ("Add", {}, [STEPS, (3, 1, 4)]),
    ("Concatenate", {}, [STEPS, (3, 7, 2)]),
    ("Concatenate", {"axis": 1}, [STEPS, (3, 2, 4)]),
    ("Dot", {"axes": 1}, [VECTORS, VECTORS]),
    ("Dot", {"axes": 2, "normalize": True}, [STEPS, (3, 5, 4)]),
    ("Dot", {"axes": (2, 1)}, [STEPS, (3, 4, 5)]),
    *[("STFTSpectrogram", {"mode": mode, "frame_length": 8, "frame_step": 3, "padding": p}, [(2, 30, 2)])
      for mode in ("log", "magnitude", "psd", "real", "imag", "stft") for p in ("valid", "same")],
    ("STFTSpectrogram", {"frame_length": 8, "expand_dims": True, "window": None, "scaling": "spectrum"}, [(2, 30, 2)]),
    ("EinsumDense", {"equation": "abc,cd->abd", "output_shape": (7, 5), "bias_axes": "d"}, [STEPS]),
    # For images that are not square, Keras swaps height and width in the symbolic shape.
    ("EinsumDense", {"equation": "...x,xy->...y", "output_shape": 5, "bias_axes": "y", "activation": "relu"}, [STEPS]),
    ("EinsumDense", {"equation": "ab...,bc->ac...", "output_shape": 5, "bias_axes": "c"}, [STEPS]),
    ("EinsumDense", {"equation": "abc,cde->abde", "output_shape": (7, 2, 3), "bias_axes": "de"}, [STEPS]),
    *[("Attention", {"use_scale": s, "score_mode": m}, [STEPS, (3, 5, 4)]) for s in (False, True)
      for m in ("dot", "concat")],
    ("Attention", {}, [STEPS, (3, 5, 6), (3, 5, 4)]),
    *[("AdditiveAttention", {"use_scale": s}, [STEPS, (3, 5, 4)]) for s in (False, True)],
    *[(name, {"units": 5, "return_sequences": s, "go_backwards": b}, [STEPS])
      for name in ("SimpleRNN", "LSTM", "GRU") for s in (False, True) for b in (False, True)],
    ("SimpleRNN", {"units": 5, "activation": "relu", "use_bias": False}, [STEPS]),
    ("SimpleRNN", {"units": 5, "activation": "sigmoid"}, [STEPS]),
    ("LSTM", {"units": 5, "use_bias": False}, [STEPS]),
    ("LSTM", {"units": 5, "activation": "relu", "recurrent_activation": "hard_sigmoid"}, [STEPS]),
    ("GRU", {"units": 5, "use_bias": False}, [STEPS]),
    ("GRU", {"units": 5, "reset_after": False, "return_sequences": True}, [STEPS]),
    ("GRU", {"units": 5, "activation": "relu"}, [STEPS]),
]  # fmt: skip
