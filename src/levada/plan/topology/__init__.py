"""Shapes -> the topology that all queries share."""
