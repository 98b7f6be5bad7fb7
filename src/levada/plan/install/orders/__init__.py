"""In which order the parts of a conjunction are joined, by what other queries join."""
