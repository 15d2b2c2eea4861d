"""The read model: rows that can be rebuilt from the chain, and the few that cannot."""
