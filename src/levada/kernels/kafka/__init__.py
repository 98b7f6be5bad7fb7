"""Kernels over Kafka's record batches: records, checksums, values."""
