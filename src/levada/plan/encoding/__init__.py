"""Plans as bytes: columns of numbers and texts, without pickles."""
