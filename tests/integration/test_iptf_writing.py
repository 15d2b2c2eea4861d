"""Writing below iptf://mfs from TensorFlow, and publishing what was written."""

import numpy as np
import pytest
import tensorflow as tf

from tests.integration.iptf_tensorflow import world
from tests.integration.iptf_world import World
from trainyard.content.cid import Cid
from trainyard.iptf import publish

gfile = tf.io.gfile


@pytest.fixture(scope="module")
def here() -> World:
    return world()


@pytest.fixture
def folder(here: World, request: pytest.FixtureRequest) -> str:
    path = f"iptf://mfs/{request.node.name}"
    gfile.makedirs(path)
    return path


def test_what_is_written_is_read_back_before_and_after_it_is_published(
    here: World, folder: str
) -> None:
    gfile.makedirs(f"{folder}/a/b")
    with gfile.GFile(f"{folder}/a/b/text", "w") as file:
        file.write("one ")
        assert file.tell() == 4
        file.flush()
        assert gfile.GFile(f"{folder}/a/b/text").read() == "one "
        file.write("two" * 100_000)
    with gfile.GFile(f"{folder}/a/b/text", "a") as file:
        file.write(" three")
    expected = "one " + "two" * 100_000 + " three"
    assert gfile.GFile(f"{folder}/a/b/text").read() == expected

    cid = publish(folder)

    assert gfile.GFile(f"ipfs://{cid}/a/b/text").read() == expected
    assert Cid.parse(cid) in here.store.pins()
    with gfile.GFile(f"{folder}/a/b/text", "w") as file:
        file.write("changed")
    assert gfile.GFile(f"ipfs://{cid}/a/b/text").read() == expected
    assert publish(folder) != cid


def test_files_are_renamed_copied_and_removed(here: World, folder: str) -> None:
    cid = here.add({"a.txt": b"by CID"})
    gfile.copy(f"ipfs://{cid}/a.txt", f"{folder}/copy.txt")
    gfile.copy(f"{folder}/copy.txt", f"{folder}/second.txt")
    with pytest.raises(tf.errors.AlreadyExistsError):
        gfile.copy(f"{folder}/copy.txt", f"{folder}/second.txt")
    gfile.rename(f"{folder}/second.txt", f"{folder}/third.txt")
    with pytest.raises(tf.errors.AlreadyExistsError):
        gfile.rename(f"{folder}/third.txt", f"{folder}/copy.txt")
    gfile.rename(f"{folder}/third.txt", f"{folder}/copy.txt", overwrite=True)

    assert gfile.listdir(folder) == ["copy.txt"]
    assert gfile.GFile(f"{folder}/copy.txt").read() == "by CID"
    with pytest.raises(tf.errors.NotFoundError):
        gfile.remove(f"{folder}/third.txt")
    gfile.remove(f"{folder}/copy.txt")
    gfile.makedirs(f"{folder}/tree/below")
    gfile.GFile(f"{folder}/tree/below/file", "w").close()
    gfile.rmtree(f"{folder}/tree")
    assert gfile.listdir(folder) == []
    assert gfile.glob("iptf://mfs/*") != []


def test_directories_are_made_as_on_a_disk(folder: str) -> None:
    gfile.mkdir(f"{folder}/one")
    gfile.mkdir(f"{folder}/one")  # TensorFlow itself forgives it
    gfile.makedirs(f"{folder}/one")
    with pytest.raises(tf.errors.NotFoundError):
        gfile.mkdir(f"{folder}/no/parent")
    with pytest.raises(tf.errors.NotFoundError):
        gfile.GFile(f"{folder}/no/file", "w").write("x")
    with pytest.raises(tf.errors.FailedPreconditionError):
        gfile.GFile(f"{folder}/one", "w").write("x")


def test_records_models_and_checkpoints_are_written(folder: str) -> None:
    with tf.io.TFRecordWriter(f"{folder}/records") as writer:
        for number in range(1000):
            writer.write(str(number).encode())
    variable = tf.Variable(np.arange(100_000, dtype=np.float32))
    module = tf.Module()
    module.variable = variable
    tf.saved_model.save(module, f"{folder}/saved")
    prefix = tf.train.Checkpoint(variable=variable).save(f"{folder}/checkpoints/step")
    model = tf.keras.Sequential([tf.keras.layers.Input((4,)), tf.keras.layers.Dense(3)])
    model.save(f"{folder}/model.keras")
    base = f"ipfs://{publish(folder)}"

    records = tf.data.TFRecordDataset(f"{base}/records").as_numpy_iterator()
    assert [int(record) for record in records] == list(range(1000))
    loaded = tf.saved_model.load(f"{base}/saved")
    np.testing.assert_array_equal(loaded.variable.numpy(), variable.numpy())
    assert tf.train.latest_checkpoint(f"{folder}/checkpoints") == prefix
    restored = tf.Variable(tf.zeros([100_000]))
    tf.train.Checkpoint(variable=restored).restore(prefix).assert_consumed()
    np.testing.assert_array_equal(restored.numpy(), variable.numpy())
    again = tf.keras.models.load_model(f"{base}/model.keras")
    np.testing.assert_array_equal(again.weights[0].numpy(), model.weights[0].numpy())


def test_tensorboard_logs_are_written_and_read_while_they_grow(folder: str) -> None:
    writer = tf.summary.create_file_writer(folder)
    with writer.as_default():
        tf.summary.scalar("loss", 0.5, step=1)
        writer.flush()
        (events,) = gfile.glob(f"{folder}/events*")
        assert _losses(events) == [(1, 0.5)]
        tf.summary.scalar("loss", 0.25, step=2)
    writer.close()

    assert _losses(events) == [(1, 0.5), (2, 0.25)]
    published = events.replace(folder, f"ipfs://{publish(folder)}")
    assert _losses(published) == [(1, 0.5), (2, 0.25)]


def _losses(events: str) -> list[tuple[int, float]]:
    return [
        (event.step, float(tf.make_ndarray(value.tensor)))
        for event in tf.compat.v1.train.summary_iterator(events)
        for value in event.summary.value
        if value.tag == "loss"
    ]
