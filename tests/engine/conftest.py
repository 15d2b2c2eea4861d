"""TensorFlow is set up for all tests of a process before any of them imports it."""

from trainyard.engine import runtime

runtime.start(threads=1)
