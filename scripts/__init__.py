"""Build, check and deployment scripts. Run them from the repository's root."""
