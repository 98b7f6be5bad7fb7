"""Kernels over keys: groups, buckets, probes, sums, searches."""
