"""Sides that several joins have in common: kept once, and read by each of them."""
