"""Rows that clients push: checked, made durable, then acknowledged."""
