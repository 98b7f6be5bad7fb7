"""What each query has had of results, without a line of JSON for each."""
