"""The requester's side in Python: `fit`, `attach`, `quote`, receipts. `trainyard` itself is its
public face, which imports nothing of this before it is asked for."""
