"""Data sets of strangers: looked at and made into arrays, in the sandbox."""
