"""Ports of our own on loopback."""

import socket

HOST = "127.0.0.1"


def free_port() -> int:
    """One where nothing listens now. Who wants it has to be quick, and to try again if not."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        # As servers do: what the last one left behind is in nobody's way.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True
