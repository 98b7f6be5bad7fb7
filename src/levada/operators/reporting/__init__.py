"""Reports: due times, report rows, and the relation-to-stream operators."""
