"""`ipfs://` and `iptf://` inside TensorFlow: a plugin, and the gate that verifies for it."""

from trainyard.iptf.enabling import enable, publish

__all__ = ["enable", "publish"]
