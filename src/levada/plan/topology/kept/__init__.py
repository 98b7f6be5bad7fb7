"""What is kept once for several joins: static data found again, and all of it told."""
