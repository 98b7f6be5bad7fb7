"""For tests: the naive reference, comparison of results, stream builders, a manual clock, random
cases.
"""
