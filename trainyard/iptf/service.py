"""What a gate does for each request of the plugin."""

import json
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from trainyard.content.content import Content
from trainyard.content.names import ContentPath
from trainyard.iptf.codes import Code
from trainyard.iptf.files import OpenFiles
from trainyard.iptf.intervals import Intervals
from trainyard.iptf.recording import Recorder
from trainyard.iptf.reflog import Reflog
from trainyard.iptf.tree import MutablePath, Tree, mutable, parse_uri
from trainyard.iptf.wire import Fields, Message, Op


@dataclass(slots=True)
class Session:
    """One process at the gate: its number, its run, and how many connections it has."""

    number: int
    pid: int
    run: int
    connections: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer, and the descriptor that goes with it, which is then to be closed."""

    message: Message
    fd: int | None = None


class Service:
    """The operations of the wire protocol, over a tree, its open files and the reflog."""

    def __init__(self, tree: Tree, files: OpenFiles, reflog: Reflog) -> None:
        self._tree, self._files, self._reflog = tree, files, reflog
        self._recorder = Recorder(tree, files, reflog)
        self._operations: dict[int, Callable[[Session, Fields], Answer]] = {
            Op.OPEN: self._open,
            Op.ENSURE: self._ensure,
            Op.STAT: self._stat,
            Op.LIST: self._list,
            Op.MATCH: self._match,
            Op.CREATE: self._create,
            Op.MAKE_DIR: self._make_dir,
            Op.REMOVE_FILE: self._remove_file,
            Op.REMOVE_DIR: self._remove_dir,
            Op.REMOVE_TREE: self._remove_tree,
            Op.RENAME: self._rename,
            Op.PUBLISH: self._publish,
            Op.BEGIN_RUN: self._begin_run,
            Op.END_RUN: self._end_run,
        }

    def answer(self, session: Session, op: int, request: Fields) -> Answer:
        """Do what is asked; whatever goes wrong is raised."""
        operation = self._operations.get(op)
        if operation is None:
            return Answer(Message(Code.UNIMPLEMENTED).text(f"operation {op} is unknown here"))
        return operation(session, request)

    def close(self, session: Session, request: Fields) -> None:
        """Record what was read of a file, and close it if that is asked for.

        A gate that was restarted knows no handle of before, but URI and CID say what was read.
        """
        handle, release = request.u64(), request.u8()
        uri, cid, count = _canonical(request.text()), request.text(), request.u64()
        ranges = Intervals((request.u64(), request.u64()) for _ in range(request.u32()))
        try:
            self._recorder.read(self._run(session), handle, uri, cid, ranges, count)
        finally:
            if release:
                self._files.release(handle)

    def depart(self, session: Session) -> None:
        """A process is gone: close what it had open."""
        self._files.release_all(session.number)

    def end(self) -> None:
        """Close the reflog and let go of files that are not whole."""
        self._files.end()
        self._reflog.close()

    def _run(self, session: Session) -> int:
        with session.lock:
            if not session.run:
                session.run = self._reflog.begin_run_of(session.pid)
            return session.run

    def _open(self, session: Session, request: Fields) -> Answer:
        uri = _canonical(request.text())
        opened, fd, complete, live = self._files.open(uri, session.number)
        try:
            self._recorder.opened(self._run(session), uri, opened.cid, opened.size)
        except BaseException:
            os.close(fd)
            self._files.release(opened.handle)
            raise
        head = Message(Code.OK).u64(opened.handle).u64(opened.size).u8(complete).u8(live)
        return Answer(head.text(str(opened.cid)), fd)

    def _ensure(self, session: Session, request: Fields) -> Answer:
        until, complete = self._files.ensure(request.u64(), request.u64(), request.u64())
        return Answer(Message(Code.OK).u64(until).u8(complete))

    def _stat(self, session: Session, request: Fields) -> Answer:
        uri = request.text()
        about = self._tree.stat(uri)
        place = parse_uri(uri)
        if about.directory and isinstance(place, MutablePath):
            self._recorder.found(self._run(session), place)
        return Answer(Message(Code.OK).u8(about.directory).u64(about.size).u64(about.mtime_ns))

    def _list(self, session: Session, request: Fields) -> Answer:
        return _texts(self._names(session, request.text()))

    def _match(self, session: Session, request: Fields) -> Answer:
        return _texts(self._tree.match(request.text(), partial(self._names, session)))

    def _names(self, session: Session, uri: str) -> list[str]:
        names = self._tree.names(uri)
        self._recorder.listed(self._run(session), uri)
        return names

    def _create(self, session: Session, request: Fields) -> Answer:
        place, append = mutable(request.text()), bool(request.u8())
        fd, position = self._tree.mfs.create(place.names, append=append)
        try:
            self._recorder.wrote(self._run(session), place, position)
        except BaseException:
            os.close(fd)
            raise
        return Answer(Message(Code.OK).u64(position), fd)

    def _make_dir(self, session: Session, request: Fields) -> Answer:
        place, parents = mutable(request.text()), bool(request.u8())
        try:
            there = self._tree.mfs.make_dir(place.names, parents=parents)
        except FileExistsError:
            with suppress(OSError):
                self._find(session, place)
            raise
        self._recorder.made(self._run(session), place, there)
        return Answer(Message(Code.OK))

    def _remove_file(self, session: Session, request: Fields) -> Answer:
        self._tree.mfs.remove_file(mutable(request.text()).names)
        return Answer(Message(Code.OK))

    def _remove_dir(self, session: Session, request: Fields) -> Answer:
        place = mutable(request.text())
        self._find(session, place)
        self._tree.mfs.remove_dir(place.names)
        return Answer(Message(Code.OK))

    def _remove_tree(self, session: Session, request: Fields) -> Answer:
        place = mutable(request.text())
        self._find(session, place)
        self._tree.mfs.remove_tree(place.names)
        return Answer(Message(Code.OK))

    def _find(self, session: Session, place: MutablePath) -> None:
        """Record a directory that is there already, or not any more in a moment."""
        if self._tree.mfs.stat(place.names).directory:
            self._recorder.found(self._run(session), place)

    def _rename(self, session: Session, request: Fields) -> Answer:
        source, target = mutable(request.text()), mutable(request.text())
        run = self._run(session)
        own = self._recorder.renaming(run, source, target)
        self._tree.mfs.rename(source.names, target.names)
        self._recorder.renamed(run, source, target, own=own)
        return Answer(Message(Code.OK))

    def _publish(self, session: Session, request: Fields) -> Answer:
        cid = publish(self._tree, mutable(request.text()))
        return Answer(Message(Code.OK).text(cid))

    def _begin_run(self, session: Session, request: Fields) -> Answer:
        command, cwd = json.loads(request.text()), request.text()
        with session.lock:
            session.run = self._reflog.begin_run(command, cwd)
            return Answer(Message(Code.OK).u64(session.run))

    def _end_run(self, session: Session, request: Fields) -> Answer:
        self._reflog.end_run(request.u64(), request.u32())
        return Answer(Message(Code.OK))


def publish(tree: Tree, place: MutablePath) -> str:
    """Store what stands at `place` and keep it; its CID.

    A node with mutable files of its own shows it there too, under the same path.
    """
    content: Content = tree.content
    cid = content.add(tree.mfs.path(place.names)).cid
    place_in_node = getattr(content.store, "publish_mfs", None)
    # The whole tree has no name under which a node could show it.
    if place_in_node is not None and place.names:
        place_in_node("/" + "/".join(place.names), cid)
    return str(cid)


def _canonical(uri: str) -> str:
    """One way to write each place, so that the reflog has one line for it."""
    place = parse_uri(uri)
    match place:
        case ContentPath():
            return f"ipfs://{place}"
        case MutablePath():
            return str(place)
        case _:
            return uri


def _texts(texts: list[str]) -> Answer:
    message = Message(Code.OK).u32(len(texts))
    for text in texts:
        message.text(text)
    return Answer(message)
