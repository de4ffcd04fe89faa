"""Cases of packages that run with --ecosystem."""
