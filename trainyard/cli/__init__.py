"""The `trainyard` command."""

from trainyard.cli.app import main

__all__ = ["main"]
