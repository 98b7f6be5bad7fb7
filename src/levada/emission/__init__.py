"""Results of an epoch on their way out: terms decoded, lines serialised (design, section 3,
emission).
"""
