"""What stands between strangers and the routes."""
