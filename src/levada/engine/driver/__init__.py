"""The engine's part of each epoch: pacing, quotas, expiry of queries, stream registry."""
