"""Models that come with the package: `stories`, `glosses`, `spoken` and `emoji`."""
