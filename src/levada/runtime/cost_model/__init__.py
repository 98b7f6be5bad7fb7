"""The costs of epochs: measured, learned, and used to decide how the next one runs."""
