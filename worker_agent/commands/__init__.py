"""`trainyard worker`: the operator's commands."""
