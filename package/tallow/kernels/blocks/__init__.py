"""Descriptors of fused blocks: the arrays of a block, as arguments of its kernel, and its array code.

decode_block, decode_stack   a decoder layer, and all of them, for the next tokens
cross_decode_block           a decoder layer that also attends to a sound
encoder_block                the layers of an encoder
expert_block                 the experts of a feed-forward layer
image_convolution            a convolution of images, a sum and an activation
affine                       a weight and its bias, which all of them have
"""
