"""Many queries at once: texts that differ in constants are planned from one of them."""
