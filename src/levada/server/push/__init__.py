"""Rows that clients push: checked, stored durably, then acknowledged."""
