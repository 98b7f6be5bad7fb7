"""Joins of chains and circles of inputs in one step."""
