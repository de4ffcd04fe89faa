"""torch._vendor.packaging: the package of this name."""
