"""What a query has in common with others, put in behind its other rewritings: static data that are
kept once, joins over count windows of any length.
"""
