"""How plans are written: values as columns of numbers and texts, by their own tags; no pickles."""
