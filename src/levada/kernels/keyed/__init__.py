"""Kernels over keys: groups, hash tables, sums, searches."""
