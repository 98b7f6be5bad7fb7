"""Kernels over bytes: lines, terms, literals, records, hashes."""
