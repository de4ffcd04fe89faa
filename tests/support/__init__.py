"""Helpers shared by several test folders that are not pytest fixtures."""
