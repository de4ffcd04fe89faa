"""torch.utils.data._utils.fetch: read the samples of a batch."""

from tallow.compat.absent import absent

_HINT = "iterate over a DataLoader"
_BaseDatasetFetcher = absent("torch.utils.data._utils.fetch._BaseDatasetFetcher", _HINT)
_MapDatasetFetcher = absent("torch.utils.data._utils.fetch._MapDatasetFetcher", _HINT)
_IterableDatasetFetcher = absent("torch.utils.data._utils.fetch._IterableDatasetFetcher", _HINT)
