"""What partials by slices are made of."""
