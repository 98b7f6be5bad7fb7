"""Logical plan to an equivalent logical plan: rules in a fixed order."""
