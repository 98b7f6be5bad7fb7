"""How an engine's epochs are driven."""
