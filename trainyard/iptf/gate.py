"""The gate: the process that fetches, verifies and caches for the TensorFlow plugin.

`python -m trainyard.iptf.gate` listens on IPTF_SOCKET, says so with a line on its standard output,
and ends when its standard input does, so it cannot outlive the process that started it.
"""

import os
import resource
import select
import signal
import socket
import sys
import threading
import time
import traceback
from contextlib import suppress
from pathlib import Path

from trainyard.content.settings import ContentSettings, open_content
from trainyard.iptf.cache import Cache
from trainyard.iptf.codes import Code, code_of
from trainyard.iptf.files import OpenFiles
from trainyard.iptf.mfs import Mfs
from trainyard.iptf.reflog import Reflog
from trainyard.iptf.service import Service, Session
from trainyard.iptf.settings import BadSettingError, IptfSettings, read_settings
from trainyard.iptf.tree import Tree
from trainyard.iptf.wire import PROTOCOL, Fields, Message, Op, WireError, receive, send
from trainyard.protocol.errors import TrainyardError

READY = "ready"
# The folder of the socket was made for this gate and goes with it.
REMOVE_FOLDER = "--remove-folder"
# How long the answers that are under way may take once the gate has to end.
_DRAIN_S = 5.0
# How long to wait for a descriptor to become free.
_BREATH_S = 0.05


class Gate:
    """Accepts connections and answers each in a thread of its own."""

    def __init__(self, service: Service, listener: socket.socket) -> None:
        self._service, self._listener = service, listener
        self._lock = threading.Lock()
        self._threads: dict[socket.socket, threading.Thread] = {}
        self._sessions: dict[int, Session] = {}

    def serve(self, lifeline: int) -> None:
        """Answer until the other end of `lifeline` is closed."""
        while True:
            ready, _, _ = select.select([self._listener.fileno(), lifeline], [], [])
            if lifeline in ready and not os.read(lifeline, 4096):
                return
            if self._listener.fileno() in ready:
                self._accept()

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError:  # no descriptor is free: those who have one go on, the others wait
            time.sleep(_BREATH_S)
            return
        thread = threading.Thread(target=self._attend, args=(connection,), daemon=True)
        with self._lock:
            self._threads[connection] = thread
        try:
            thread.start()
        except RuntimeError:  # no thread to be had
            with self._lock:
                del self._threads[connection]
            connection.close()

    def drain(self) -> None:
        """Take in what was sent already, such as the last ranges of a process that has ended."""
        self._listener.close()
        with self._lock:
            threads = dict(self._threads)
        for connection in threads:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RD)
        end = time.monotonic() + _DRAIN_S
        for thread in threads.values():
            thread.join(max(0.0, end - time.monotonic()))

    def _attend(self, connection: socket.socket) -> None:
        session: Session | None = None
        try:
            session = self._greet(connection)
            while session is not None and (request := receive(connection)) is not None:
                op = request.u8()
                if op == Op.CLOSE:
                    self._close(session, request)
                else:
                    self._answer(connection, session, op, request)
        except (OSError, WireError):
            pass  # the process is gone, or is none of ours
        finally:
            with self._lock:
                del self._threads[connection]
            connection.close()
            if session is not None:
                self._part(session)

    def _greet(self, connection: socket.socket) -> Session | None:
        hello = receive(connection)
        if hello is None or hello.u8() != Op.HELLO:
            return None
        protocol, number, pid, run = hello.u32(), hello.u64(), hello.u32(), hello.u64()
        if protocol != PROTOCOL:
            why = f"the gate speaks protocol {PROTOCOL}, the plugin {protocol}: restart both"
            send(connection, Message(Code.FAILED_PRECONDITION).text(why))
            return None
        with self._lock:
            session = self._sessions.setdefault(number, Session(number, pid, run))
            session.connections += 1
        send(connection, Message(Code.OK).u32(PROTOCOL))
        return session

    def _part(self, session: Session) -> None:
        with self._lock:
            session.connections -= 1
            if session.connections:
                return
            del self._sessions[session.number]
        self._service.depart(session)

    def _close(self, session: Session, request: Fields) -> None:
        try:
            self._service.close(session, request)
        except WireError:
            raise
        except Exception as error:  # nobody waits for an answer, and the next request may do
            traceback.print_exception(error)

    def _answer(
        self, connection: socket.socket, session: Session, op: int, request: Fields
    ) -> None:
        try:
            answer = self._service.answer(session, op, request)
        except WireError:
            raise
        except Exception as error:  # TensorFlow raises it as its own
            code = code_of(error)
            if code is Code.INTERNAL:
                traceback.print_exception(error)
            send(connection, Message(code).text(_told(error)))
            return
        try:
            send(connection, answer.message, answer.fd)
        finally:
            if answer.fd is not None:
                os.close(answer.fd)


def _told(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{os.fsdecode(error.filename)}: {error.strerror}"
    return str(error) or type(error).__name__


def listen(path: Path) -> socket.socket:
    """A socket that only this user can connect to."""
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        listener.bind(str(path))
    finally:
        os.umask(before)
    listener.listen(128)
    return listener


def open_service(settings: IptfSettings, content_settings: ContentSettings) -> Service:
    """All of a gate but its socket."""
    tree = Tree(open_content(content_settings), Mfs(settings.mfs_in(content_settings)))
    files = OpenFiles(tree, Cache(settings.cache.expanduser(), settings.cache_bytes))
    return Service(tree, files, Reflog(settings.reflog_in(content_settings)))


def main() -> int:
    try:
        settings, content_settings = read_settings()
    except BadSettingError as error:
        print(f"the iptf gate cannot start: {error}", file=sys.stderr)
        return 2
    if settings.socket is None:
        print("set IPTF_SOCKET to the path to listen on", file=sys.stderr)
        return 2
    # Ctrl-C is for the program that reads; the gate answers it to the end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Each file that is being read holds a descriptor.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    try:
        service = open_service(settings, content_settings)
        listener = listen(settings.socket)
    except (TrainyardError, OSError) as error:
        print(f"the iptf gate cannot start: {error}", file=sys.stderr)
        return 1
    gate = Gate(service, listener)
    print(READY, flush=True)
    gate.serve(sys.stdin.fileno())
    gate.drain()
    service.end()
    settings.socket.unlink(missing_ok=True)
    if REMOVE_FOLDER in sys.argv[1:]:
        with suppress(OSError):
            settings.socket.parent.rmdir()
    return 0


if __name__ == "__main__":
    code = main()
    sys.stderr.flush()
    # Threads that still wait for a source must not keep the gate alive.
    os._exit(code)
