"""The part of an epoch that runs in tasks: ingest and stages."""
