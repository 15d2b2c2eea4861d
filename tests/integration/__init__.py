"""Tests with real servers."""
