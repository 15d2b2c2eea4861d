"""Inside the sandbox: `python -m worker_agent.peers.inner CONFIG -- COMMAND…`.

TensorFlow's processes find all others at ports of the loopback address, the same at every worker,
and know of nothing else. Here what they say to ports of other workers goes out through sockets in a
folder, and what comes in through one goes to the ports of this worker. The command is a child, with
whose status this process ends.

Each stream begins with the port that it is for, as two bytes. Threads, and the standard library
only: this starts with every attempt of a run, and each step of a run waits for what it carries.
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from trainyard.content.lifeline import dying_with_parent
from trainyard.engine.plain_files import written

FIRST_PORT = 20_000
_LOOPBACK = "127.0.0.1"
_BUFFER_BYTES = 1 << 20
# Each takes two threads, which count as processes in the sandbox.
_MOST_STREAMS = 64
_STACK_BYTES = 256 << 10
# TensorFlow takes some time to listen, and gRPC waits for long after a refusal.
_PATIENCE_S = 15.0
_LOOK_EVERY_S = 0.05
# What a command said last has so long to leave after its end, whether or not a peer takes it.
_LAST_WORDS_S = 5.0
_FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
_SIGNALLED = 128


@dataclass(frozen=True, slots=True)
class Config:
    """Where the sockets are, who this is, and at which ports each worker's processes listen."""

    folder: str
    slot: int
    ports: Sequence[Sequence[int]]

    @classmethod
    def read(cls, path: Path) -> "Config":
        return cls(**json.loads(path.read_bytes()))

    def write(self, path: Path) -> None:
        # Of the runner, into a folder where the sandbox may have put a link of that name.
        with written(path) as file:
            file.write(json.dumps(asdict(self)).encode())

    @property
    def own(self) -> Sequence[int]:
        return self.ports[self.slot]


def sync_ports(workers: int) -> list[list[int]]:
    """One process for each worker, as `sync` has it."""
    return [[FIRST_PORT + slot] for slot in range(workers)]


def async_ports(workers: int, leader: int) -> list[list[int]]:
    """One process for each worker, and two servers more at the worker that leads."""
    ports = [[FIRST_PORT + 2 + slot] for slot in range(workers)]
    ports[leader] += [FIRST_PORT, FIRST_PORT + 1]
    return ports


def main() -> None:
    config, command = Config.read(Path(sys.argv[1])), sys.argv[3:]
    if sys.argv[2:3] != ["--"] or not command:
        sys.exit("usage: python -m worker_agent.peers.inner CONFIG -- COMMAND…")
    sys.exit(run(config, command))


def run(config: Config, command: Sequence[str]) -> int:
    """Carry what the command and its peers say until it ends, and return its status."""
    threading.stack_size(_STACK_BYTES)
    speech = _Speech()
    with contextlib.ExitStack() as stack:
        # Before the command is there: nothing that it says should be refused.
        carriers = [stack.enter_context(carrier) for carrier in _carriers(config, speech)]
        child = subprocess.Popen(command, preexec_fn=dying_with_parent())
        for number in _FORWARDED:
            signal.signal(number, lambda number, _: child.send_signal(number))
        for carrier in carriers:
            carrier.start()
        status = child.wait()
        # Its ends of all streams are closed now, but what it sent may be here still.
        speech.wait_for_end(_LAST_WORDS_S)
    return status if status >= 0 else _SIGNALLED - status


class _Speech:
    """Counts the streams on which something of the command is still on its way out."""

    def __init__(self) -> None:
        self._streams, self._changed = 0, threading.Condition()

    def __enter__(self) -> None:
        with self._changed:
            self._streams += 1

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._streams -= 1
            self._changed.notify_all()

    def wait_for_end(self, timeout_s: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: not self._streams, timeout_s)


def _carriers(config: Config, speech: _Speech) -> Iterator["_Carrier"]:
    streams = threading.BoundedSemaphore(_MOST_STREAMS)
    # Names relative to the folder: that of a socket has at most 107 letters.
    folder = os.open(config.folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    place = f"/proc/self/fd/{folder}"
    with contextlib.suppress(FileNotFoundError):
        os.unlink("in", dir_fd=folder)
    yield _In(_unix_listener(f"{place}/in"), streams, speech, config.own)
    for slot, ports in enumerate(config.ports):
        for port in ports if slot != config.slot else ():
            listener = socket.create_server((_LOOPBACK, port), backlog=64)
            yield _Out(listener, streams, speech, f"{place}/to-{slot}", port)


class _Carrier:
    """Takes the connections of one listener to where they belong, each in threads of its own."""

    def __init__(
        self, listener: socket.socket, streams: threading.BoundedSemaphore, speech: _Speech
    ) -> None:
        self._listener, self._streams, self._speech = listener, streams, speech

    def __enter__(self) -> "_Carrier":
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def start(self) -> None:
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                try:
                    threading.Thread(target=self._carry, args=(near,), daemon=True).start()
                except RuntimeError:  # the sandbox has no more threads to give
                    near.close()

    def _carry(self, near: socket.socket) -> None:
        # Whoever hangs up ends one stream; the command learns of it by its own end of that.
        with contextlib.suppress(OSError), near:
            if not self._streams.acquire(blocking=False):
                return
            try:
                with self._connect(near) as far:
                    self._carry_both(near, far)
            finally:
                self._streams.release()

    def _carry_both(self, near: socket.socket, far: socket.socket) -> None:
        _tune(near)
        _tune(far)
        command, peer = self._ends(near, far)
        back = threading.Thread(target=_copy, args=(peer, command), daemon=True)
        with self._speech:
            try:
                back.start()
            except RuntimeError:
                return
            _copy(command, peer)
        back.join()

    def _connect(self, near: socket.socket) -> socket.socket:
        raise NotImplementedError

    def _ends(self, near: socket.socket, far: socket.socket) -> tuple[socket.socket, socket.socket]:
        """That of the command first, then that of the peer."""
        raise NotImplementedError


class _Out(_Carrier):
    def __init__(
        self,
        listener: socket.socket,
        streams: threading.BoundedSemaphore,
        speech: _Speech,
        door: str,
        port: int,
    ) -> None:
        super().__init__(listener, streams, speech)
        self._door, self._port = door, port

    def _connect(self, near: socket.socket) -> socket.socket:
        far = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            far.connect(self._door)
            far.sendall(self._port.to_bytes(2, "big"))
        except BaseException:
            far.close()
            raise
        return far

    def _ends(self, near: socket.socket, far: socket.socket) -> tuple[socket.socket, socket.socket]:
        return near, far


class _In(_Carrier):
    def __init__(
        self,
        listener: socket.socket,
        streams: threading.BoundedSemaphore,
        speech: _Speech,
        ports: Sequence[int],
    ) -> None:
        super().__init__(listener, streams, speech)
        self._ports = ports

    def _connect(self, near: socket.socket) -> socket.socket:
        near.settimeout(_PATIENCE_S)
        port = int.from_bytes(near.recv(2, socket.MSG_WAITALL), "big")
        near.settimeout(None)
        if port not in self._ports:
            raise ConnectionRefusedError(f"port {port} is none of the run's")
        until = time.monotonic() + _PATIENCE_S
        while True:
            try:
                return socket.create_connection((_LOOPBACK, port))
            except ConnectionRefusedError:
                if time.monotonic() > until:
                    raise
            time.sleep(_LOOK_EVERY_S)

    def _ends(self, near: socket.socket, far: socket.socket) -> tuple[socket.socket, socket.socket]:
        return far, near


def _copy(source: socket.socket, target: socket.socket) -> None:
    """Carry one direction to its end. If it is cut off, so is the other."""
    buffer = memoryview(bytearray(_BUFFER_BYTES))
    try:
        while length := source.recv_into(buffer):
            target.sendall(buffer[:length])
        target.shutdown(socket.SHUT_WR)
    except OSError:
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


def _unix_listener(path: str) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(path)
        listener.listen(64)
    except BaseException:
        listener.close()
        raise
    return listener


def _tune(sock: socket.socket) -> None:
    if sock.family == socket.AF_INET:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    else:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER_BYTES)


if __name__ == "__main__":
    main()
