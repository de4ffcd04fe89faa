"""Programs of public repositories, run unchanged from a folder with their checkouts."""
