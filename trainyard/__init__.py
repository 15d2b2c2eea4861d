"""Trainyard: a decentralised marketplace for TensorFlow training."""

__version__ = "0.1.0"

__all__ = ["__version__"]
