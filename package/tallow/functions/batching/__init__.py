"""vmap: tensors with a hidden batch dim, and how ops compute with them.

tensors.py has the tensors, rules.py and the files after it a rule for each kind of op (`tallow.ops.table.BATCHES`), and
level.py chooses the rule. `tallow.core.apply` asks the level while `tallow.func.vmap` runs a function: a rule calls ops
on the tensors with the batch dim, so gradients flow as through any others.
"""
