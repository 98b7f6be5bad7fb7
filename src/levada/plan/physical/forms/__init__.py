"""The physical form of joins: figures, what each form costs by them, the choice."""
