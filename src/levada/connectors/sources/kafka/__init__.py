"""Kafka topics: the driver asks for offsets, and tasks fetch messages."""
