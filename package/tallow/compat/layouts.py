"""Layouts of PyTorch's sparse tensors, to compare with: no tensor has them."""

from tallow.ops.memory_format import layout

sparse_coo, sparse_csr, sparse_csc, sparse_bsr, sparse_bsc = map(
    layout, ("sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc")
)
