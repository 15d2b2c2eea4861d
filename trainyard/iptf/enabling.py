"""Making `ipfs://` and `iptf://` known to the TensorFlow of this process."""

import os
import sys
import threading
from pathlib import Path

from trainyard.iptf.client import GateClient, GateError
from trainyard.iptf.codes import Code

_lock = threading.Lock()
_enabled = False


def enable() -> None:
    """Register the plugin once, and start a gate or join the one that IPTF_SOCKET names.

    Processes that this one starts find the gate in their environment and join it.
    """
    global _enabled
    with _lock:
        if _enabled:
            return
        import tensorflow as tf

        from trainyard.iptf.build import build_plugin

        plugin = build_plugin()
        if not os.environ.get("IPTF_SOCKET"):
            _start_gate()
        with GateClient(_socket()) as gate:
            if not os.environ.get("IPTF_RUN"):
                command = [sys.executable, *sys.orig_argv[1:]]
                os.environ["IPTF_RUN"] = str(gate.begin_run(command, os.getcwd()))
        tf.experimental.register_filesystem_plugin(str(plugin))
        _enabled = True


def publish(uri: str) -> str:
    """Store what stands at a URI below iptf://mfs and keep it; its CID.

    What a file still holds back is not in it: close or flush it first.
    """
    with GateClient(_socket()) as gate:
        return gate.publish(uri)


def _socket() -> Path:
    path = os.environ.get("IPTF_SOCKET")
    if not path:
        raise GateError(Code.UNAVAILABLE, "no gate is running: call trainyard.iptf.enable()")
    return Path(path)


def _start_gate() -> None:
    from trainyard.iptf.launching import GateProcess

    # Never stopped here: it ends with this process, after the plugin has told it what was read.
    os.environ["IPTF_SOCKET"] = str(GateProcess().socket)
