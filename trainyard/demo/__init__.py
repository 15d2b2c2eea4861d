"""The whole market on one machine, shown on one task: `trainyard demo`."""
