"""Algebra -> algebra: rules that keep the meaning, run one after the other by ``pipeline``."""
