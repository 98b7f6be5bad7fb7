"""Kernels over what brokers hand out: batches of records, their checksums, their values."""
