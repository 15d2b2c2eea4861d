"""A whole market on one machine: a chain with the market on it, content, and funded accounts.

`devnet.Devnet` is its face: a context manager for tests, and `Devnet.load` for one that runs.
"""
