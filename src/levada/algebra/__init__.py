"""Syntax tree -> algebra: immutable nodes and expressions, free of any language. Behind this stage
nothing knows the dialect.
"""
