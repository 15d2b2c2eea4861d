"""The rules of the market as pure functions and values: no I/O, no clock, no chain."""
