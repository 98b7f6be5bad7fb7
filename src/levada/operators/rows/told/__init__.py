"""By what rows are told to be within ranges."""
