"""What each operator of an application's queries costs, measured on a sample of its streams."""
