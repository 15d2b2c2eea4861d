"""A whole market on one machine: chain, contracts, content, accounts, and agents."""
