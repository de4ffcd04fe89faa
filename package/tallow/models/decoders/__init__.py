"""Language models that read from left to right, one file per architecture, and the bases they have in common."""
