"""The record of differentiable calls, under tensors: `tallow.core` writes it, and `tallow.autograd` reads it.

graph, names            nodes and edges; names of closures
modes                   what a thread records
hooks                   hooks of gradients, which see each as one tensor
writes, views, saved    versions of arrays, in-place writes into views, and what closures hold
engine, broadcast       the sweep from outputs to leaves, and gradients of operands that were broadcast
"""
