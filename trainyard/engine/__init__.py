"""Training runs as chains of states, of which anybody can recompute every link."""
