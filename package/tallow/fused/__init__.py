"""Whole transformer blocks as single kernels, and the rules for when a model may run them.

Calling a model's modules costs a call from Python for each op, some fifteen to forty for a layer. A fused block
computes the layer in one call. `tallow.kernels.blocks` has the descriptors of blocks and their array code.

    eligibility             why modules cannot run fused, and when they have changed
    steps                   one token through all blocks of a decoder, and to logits
    decoder                 steps as long as a model and its cache allow them
    weights, explanation    arrays of layers; the text that `model.explain()` prints
"""
