"""From the chain's events to rows: reorg-safe, resumable, and rebuilt from nothing."""
