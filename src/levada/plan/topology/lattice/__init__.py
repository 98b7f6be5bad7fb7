"""The joins that could be shared, by what they have in common."""
