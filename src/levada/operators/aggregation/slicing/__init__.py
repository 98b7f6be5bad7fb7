"""Partial aggregates over slices that several queries share."""
