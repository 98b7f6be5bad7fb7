"""Logical plan to the execution plan that all queries share."""
