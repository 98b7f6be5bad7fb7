"""What epochs cost and what the next one will take, by the model ``epochs``."""
