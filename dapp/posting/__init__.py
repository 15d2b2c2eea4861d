"""Posting a task: manifests, models, quotes, and the pre-flight."""
