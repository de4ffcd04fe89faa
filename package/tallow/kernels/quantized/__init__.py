"""Matrices with quantised weights, and the formats of their blocks.

quantized_matrix                  what layers, ops and fused blocks know of such matrices
block_matrix, interleaved         rows of blocks as in a GGUF file, and rows interleaved for the CPU's kernels
grouped_matrix                    codes and scales in arrays of their own, for a GPU's kernels
gguf_format, _codebooks, _grids   what the formats of blocks have in common, and the tables that some of them need
gguf_blocks                       blocks to floats
gguf_quantize, gguf_scales        floats to blocks
int8_rows                         keys and values of a cache in int8
"""
