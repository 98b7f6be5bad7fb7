"""Checks of query texts, in separate processes."""
