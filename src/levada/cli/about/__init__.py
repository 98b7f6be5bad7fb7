"""What commands tell of files, options and languages, without running anything."""
