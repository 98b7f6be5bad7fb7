"""Algebra -> topology: operators by slots, shared between queries, with the stages and exchanges
that they need.
"""
