"""Logical plan to the physical operators of one query."""
