"""Streams that come as messages: their texts, and what is said beside these."""
