"""Moves key groups between partitions, and chooses the number of partitions."""
