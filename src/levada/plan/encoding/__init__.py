"""How plans are written: values as columns of numbers and texts, by tags of their own; no
pickles.
"""
