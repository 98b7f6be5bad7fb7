"""CQL's tree -> algebra, typed."""
