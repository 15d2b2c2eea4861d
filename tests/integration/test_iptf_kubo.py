"""TensorFlow over a real Kubo node: read by CID, write, publish, and a node that lies or dies."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.iptf_world import World
from trainyard.content.cid import Cid
from trainyard.content.content import Content
from trainyard.content.dag import decode_node
from trainyard.content.kubo import KuboStore
from trainyard.content.kubo_node import KuboNode
from trainyard.content.names import ContentPath

pytest_plugins = ("tests.kubo_nodes",)


@pytest.fixture
def node(kubo_binary: Path, tmp_path: Path) -> Iterator[KuboNode]:
    """A node that the test may harm."""
    with KuboNode(kubo_binary, tmp_path / "node") as node:
        yield node


def test_a_program_trains_from_a_node_and_publishes_to_it(node: KuboNode, tmp_path: Path) -> None:
    here = World(tmp_path, more={"TRAINYARD_KUBO": node.api_url})
    told = here.python(
        """
        import os
        import numpy as np
        import tensorflow as tf
        from trainyard.iptf import enable, publish

        enable()
        base = "iptf://mfs/data"
        tf.io.gfile.makedirs(base)
        images = np.arange(4000, dtype=np.float32).reshape(1000, 4) / 4000
        for shard in range(4):
            with tf.io.TFRecordWriter(f"{base}/part-{shard}.tfrecord") as writer:
                for image in images[shard::4]:
                    writer.write(image.tobytes())
        with tf.io.gfile.GFile(f"{base}/large", "wb") as file:
            file.write(os.urandom(3_000_000))
        cid = publish(base)

        files = tf.data.Dataset.list_files(f"ipfs://{cid}/*.tfrecord", seed=1)
        records = files.interleave(tf.data.TFRecordDataset, cycle_length=4)
        data = records.map(lambda record: tf.io.decode_raw(record, tf.float32)).batch(100)
        model = tf.keras.Sequential([tf.keras.layers.Input((4,)), tf.keras.layers.Dense(4)])
        model.compile("sgd", "mse")
        model.fit(data.map(lambda batch: (batch, batch)), verbose=0)
        model.save("iptf://mfs/model.keras")
        tf.saved_model.save(model, "iptf://mfs/saved")
        model_cid = publish("iptf://mfs/model.keras")
        again = tf.keras.models.load_model("iptf://mfs/model.keras")
        np.testing.assert_array_equal(again.weights[0].numpy(), model.weights[0].numpy())
        saved = f"ipfs://{publish('iptf://mfs/saved')}"
        np.testing.assert_allclose(
            tf.saved_model.load(saved).signatures["serving_default"](tf.constant(images[:2]))[
                "output_0"
            ],
            model(images[:2]),
            rtol=1e-5,
        )
        print(cid, model_cid)
        """
    )
    data, model = (Cid.parse(text) for text in told.split())
    store = KuboStore(node.api_url)

    assert store.resolve_mfs("/data") == data
    assert store.resolve_mfs("/model.keras") == model
    assert {data, model} <= store.pins()
    names = [entry.name for entry in Content(store).ls(ContentPath(data))]
    assert names == ["large", *(f"part-{shard}.tfrecord" for shard in range(4))]

    file = Content(store).stat(ContentPath(data, ("large",))).cid
    bad = decode_node(store.fetch(file)).links[4].cid
    _flip_in_repository(node, store.fetch(bad), tmp_path / "node")
    here = World(tmp_path / "second", more={"TRAINYARD_KUBO": node.api_url})
    here.folder.mkdir()
    told = here.python(
        f"""
        import os, signal
        import tensorflow as tf
        from trainyard.iptf import enable

        enable()
        good = tf.io.gfile.glob("ipfs://{data}/part-*")
        print(len(list(tf.data.TFRecordDataset(good[0]))))
        try:
            tf.io.read_file("ipfs://{data}/large")
        except tf.errors.DataLossError as error:
            print("{bad}" in str(error))
        os.kill({node.pid}, signal.SIGKILL)
        try:
            tf.io.read_file(good[1])
        except (tf.errors.UnavailableError, tf.errors.DeadlineExceededError):
            print("unavailable")
        print(len(list(tf.data.TFRecordDataset(good[0]))))
        """
    )
    assert told.split() == ["250", "True", "unavailable", "250"], "what is cached needs no node"


def _flip_in_repository(node: KuboNode, block: bytes, folder: Path) -> None:
    """Change one bit of a block in the node's files, behind its back."""
    held = [path for path in folder.rglob("*.data") if path.read_bytes() == block]
    assert len(held) == 1
    damaged = bytearray(block)
    damaged[len(block) // 2] ^= 1
    held[0].chmod(0o600)
    held[0].write_bytes(damaged)
