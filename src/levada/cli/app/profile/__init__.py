"""Measures the cost of each operator on a sample of an application's streams."""
