"""What a task came to: the published run, its model, its receipt."""
