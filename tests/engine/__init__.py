"""The engine with real TensorFlow."""
