"""What goes wrong comes out of TensorFlow as the error that says so."""

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import tensorflow as tf

from tests.integration.iptf_tensorflow import world
from tests.integration.iptf_world import World, flip_byte, remove_block
from trainyard.content.cid import Cid, Codec
from trainyard.content.dag import decode_node
from trainyard.content.names import ContentPath
from trainyard.iptf.client import GateClient, GateError
from trainyard.iptf.codes import Code
from trainyard.iptf.wire import Message, Op

gfile = tf.io.gfile


@pytest.fixture(scope="module")
def here() -> World:
    return world()


@pytest.fixture(scope="module")
def base(here: World) -> str:
    return f"ipfs://{here.add({'a.txt': b'text', 'sub/b': b'1'})}"


def _leaves(here: World, cid: Cid, name: str) -> list[Cid]:
    """The blocks of a file's bytes."""
    root = here.content.stat(ContentPath(cid, (name,))).cid
    return [link.cid for link in decode_node(here.store.fetch(root)).links]


def _read(uri: str) -> bytes:
    with gfile.GFile(uri, "rb") as file:
        return bytes(file.read())


@pytest.mark.parametrize(
    ("act", "error"),
    [
        (lambda base: _read(f"{base}/nothing"), tf.errors.NotFoundError),
        (lambda base: _read(f"{base}/sub/nothing/below"), tf.errors.NotFoundError),
        (lambda base: gfile.stat(f"{base}/nothing"), tf.errors.NotFoundError),
        (lambda base: gfile.listdir(f"{base}/nothing"), tf.errors.NotFoundError),
        (lambda base: tf.io.read_file(f"{base}/nothing"), tf.errors.NotFoundError),
        (lambda base: _read("iptf://mfs/nothing"), tf.errors.NotFoundError),
        (lambda base: _read(base), tf.errors.FailedPreconditionError),
        (lambda base: _read(f"{base}/sub"), tf.errors.FailedPreconditionError),
        (lambda base: _read(f"{base}/a.txt/below"), tf.errors.FailedPreconditionError),
        (lambda base: _read("iptf://mfs"), tf.errors.FailedPreconditionError),
        (lambda base: _read("ipfs://nonsense/a"), tf.errors.InvalidArgumentError),
        (lambda base: _read("ipfs:///a"), tf.errors.InvalidArgumentError),
        (lambda base: _read(f"{base}/../a"), tf.errors.InvalidArgumentError),
        (lambda base: _read("iptf://mfs/../secret"), tf.errors.InvalidArgumentError),
        (lambda base: _read("iptf://elsewhere/a"), tf.errors.InvalidArgumentError),
        (lambda base: gfile.glob("ipfs://*/a"), tf.errors.InvalidArgumentError),
        (lambda base: gfile.GFile(f"{base}/new", "w").write("x"), tf.errors.PermissionDeniedError),
        (
            lambda base: gfile.GFile(f"{base}/a.txt", "a").write("x"),
            tf.errors.PermissionDeniedError,
        ),
        (lambda base: gfile.mkdir(f"{base}/new"), tf.errors.PermissionDeniedError),
        (lambda base: gfile.makedirs(f"{base}/new"), tf.errors.PermissionDeniedError),
        (lambda base: gfile.remove(f"{base}/a.txt"), tf.errors.PermissionDeniedError),
        (lambda base: gfile.rmtree(f"{base}/sub"), tf.errors.PermissionDeniedError),
        (
            lambda base: gfile.rename(f"{base}/a.txt", f"{base}/b.txt"),
            tf.errors.PermissionDeniedError,
        ),
        (lambda base: gfile.rmtree("iptf://mfs"), tf.errors.PermissionDeniedError),
    ],
)
def test_the_error_has_its_kind(
    base: str, act: Callable[[str], object], error: type[Exception]
) -> None:
    with pytest.raises(error):
        act(base)


def test_a_flipped_bit_in_the_store_is_data_loss_and_no_byte_of_it_is_seen(here: World) -> None:
    data = os.urandom(3_000_000)
    cid = here.add({"file": data})
    bad = _leaves(here, cid, "file")[5]
    flip_byte(here.store, bad)

    with pytest.raises(tf.errors.DataLossError, match=str(bad)):
        tf.io.read_file(f"ipfs://{cid}/file")
    with gfile.GFile(f"ipfs://{cid}/file", "rb") as file:
        assert file.read(1_000_000) == data[:1_000_000], "what was before it is good"
        with pytest.raises(tf.errors.DataLossError):
            file.read(1_000_000)
    with pytest.raises(tf.errors.DataLossError):
        list(tf.data.FixedLengthRecordDataset(f"ipfs://{cid}/file", 1000).as_numpy_iterator())


def test_a_flipped_bit_in_a_directory_is_data_loss(here: World) -> None:
    cid = here.add({"a": b"1", "b": b"2"})
    flip_byte(here.store, cid)

    with pytest.raises(tf.errors.DataLossError, match=str(cid)):
        tf.io.read_file(f"ipfs://{cid}/a")


def test_a_block_that_is_missing_is_unavailable_until_it_is_there(here: World) -> None:
    data = os.urandom(3_000_000)
    cid = here.add({"file": data})
    missing = _leaves(here, cid, "file")[7]
    block = here.store.fetch(missing)
    remove_block(here.store, missing)

    with pytest.raises(tf.errors.UnavailableError, match=str(missing)):
        tf.io.read_file(f"ipfs://{cid}/file")
    with here.store.batch() as batch:
        batch.put(missing, block)
    assert tf.io.read_file(f"ipfs://{cid}/file").numpy() == data


@contextmanager
def _silent_server() -> Iterator[str]:
    """Takes every connection and never says a word."""
    taken: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def take() -> None:
            while True:
                try:
                    taken.append(listener.accept()[0])
                except OSError:
                    return

        threading.Thread(target=take, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
    for connection in taken:
        connection.close()


def test_a_source_that_is_silent_is_a_deadline_exceeded(tmp_path: Path) -> None:
    absent = Cid.of(Codec.RAW, b"nobody has this")
    with _silent_server() as address:
        here = World(tmp_path, gateways=address, timeout_s=0.5)
        with (
            here.gate() as gate,
            GateClient(gate.socket) as client,
            pytest.raises(GateError) as refused,
        ):
            client.ask(Message(Op.OPEN).text(f"ipfs://{absent}"))

    assert refused.value.code is Code.DEADLINE_EXCEEDED
