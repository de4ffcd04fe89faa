"""Names of `torch.nn.parallel` that tallow itself does not have."""

from tallow.compat.torch.nn.parallel.scatter_gather import gather as gather
from tallow.compat.torch.nn.parallel.scatter_gather import scatter as scatter
