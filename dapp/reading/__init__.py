"""Answers from the read model."""
