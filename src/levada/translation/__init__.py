"""Syntax tree -> algebra, for each language. Behind this stage nothing knows which language
it was.
"""
