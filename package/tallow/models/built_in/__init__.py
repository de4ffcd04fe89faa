"""Models that come with the package: `stories`, `glosses` and `spoken`."""
