"""Trains one slot of one task, as a process without a key: `python -m worker_agent.runner JOB`."""
