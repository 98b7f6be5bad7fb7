"""The rules of the optimizer, one in each module."""
