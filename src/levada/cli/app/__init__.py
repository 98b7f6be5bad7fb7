"""App files: reading them, and running the application that they describe."""
