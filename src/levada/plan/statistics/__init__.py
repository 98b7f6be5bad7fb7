"""Statistics of join inputs, and the choice of a join strategy by cost."""
