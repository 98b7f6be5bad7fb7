"""Rows that clients push: looked at, durable, then answered."""
