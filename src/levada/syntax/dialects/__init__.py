"""What sets a dialect apart from the superset grammar: keywords, flags and their mapping to the design's section 1."""
