"""What the set-up puts beside the installed packages."""
