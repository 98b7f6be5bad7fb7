"""What a blob takes from each executor of a cluster to each other, measured through Spark."""
