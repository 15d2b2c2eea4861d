"""One script per claim: each prints a table for people and, last, one line of JSON."""
