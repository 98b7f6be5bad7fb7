"""What an epoch reads of static data: files, or the imprints of what was read of them."""
