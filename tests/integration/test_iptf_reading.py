"""Everything in TensorFlow that reads, on `ipfs://` and `iptf://ipfs/`."""

import csv
import io
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from tests.integration.iptf_tensorflow import world
from tests.integration.iptf_world import World
from trainyard.content.cid import Cid

gfile = tf.io.gfile
BIG = os.urandom(5_000_000)


@pytest.fixture(scope="module")
def here() -> World:
    return world()


@pytest.fixture(scope="module")
def root(here: World) -> Cid:
    return here.add(
        {
            "a.txt": b"first line\nsecond line\nthird",
            "empty": b"",
            "sub/big.bin": BIG,
            "sub/deep/b.txt": b"below",
            "sub/deep/odd [name] *.txt": b"odd",
        }
    )


@pytest.fixture(params=["ipfs://", "iptf://ipfs/"])
def base(root: Cid, request: pytest.FixtureRequest) -> str:
    return f"{request.param}{root}"


def test_gfile_reads_lines_and_seeks(base: str) -> None:
    with gfile.GFile(f"{base}/a.txt") as file:
        assert file.size() == 28
        assert file.readline() == "first line\n"
        assert file.tell() == 11
        file.seek(-5, whence=2)
        assert file.read() == "third"
        file.seek(6)
        assert file.read(4) == "line"
    with gfile.GFile(f"{base}/sub/big.bin", "rb") as file:
        file.seek(4_000_000)
        assert file.read(1000) == BIG[4_000_000:4_001_000]
        file.seek(0)
        assert file.read() == BIG
    with gfile.GFile(f"{base}/empty", "rb") as file:
        assert file.read() == b""


def test_gfile_lists_globs_walks_and_describes(base: str) -> None:
    assert gfile.listdir(base) == ["a.txt", "empty", "sub"]
    assert gfile.glob(f"{base}/*.txt") == [f"{base}/a.txt"]
    assert gfile.glob(f"{base}/*/d??p/[b-c].txt") == [f"{base}/sub/deep/b.txt"]
    assert gfile.glob(f"{base}/sub/deep/odd \\[name\\] \\*.txt") == [
        f"{base}/sub/deep/odd [name] *.txt"
    ]
    assert gfile.glob(f"{base}/nothing/*") == []
    assert gfile.glob(f"{base}/a.txt") == [f"{base}/a.txt"]
    assert [(Path(path).name, names) for path, _, names in gfile.walk(f"{base}/sub")] == [
        ("sub", ["big.bin"]),
        ("deep", ["b.txt", "odd [name] *.txt"]),
    ]
    about = gfile.stat(f"{base}/sub/big.bin")
    assert (about.length, about.is_directory) == (len(BIG), False)
    assert gfile.stat(f"{base}/sub").is_directory
    assert gfile.isdir(base)
    assert not gfile.isdir(f"{base}/a.txt")
    assert gfile.exists(f"{base}/empty")
    assert not gfile.exists(f"{base}/nothing")
    assert not gfile.exists(f"{base}/a.txt/below")


def test_gfile_copies_to_the_disk(base: str, tmp_path: Path) -> None:
    gfile.copy(f"{base}/sub/big.bin", str(tmp_path / "big"))

    assert (tmp_path / "big").read_bytes() == BIG


def test_read_file_in_and_out_of_a_function(base: str) -> None:
    @tf.function  # type: ignore[untyped-decorator]
    def read(path: tf.Tensor) -> tf.Tensor:
        return tf.io.read_file(path)

    assert tf.io.read_file(f"{base}/a.txt").numpy() == b"first line\nsecond line\nthird"
    assert read(tf.constant(f"{base}/sub/big.bin")).numpy() == BIG


def test_a_memory_region_is_the_file(base: str, here: World) -> None:
    values = np.arange(1_000_000, dtype=np.float32)
    cid = here.add({"values": values.tobytes()})

    region = tf.raw_ops.ImmutableConst(
        dtype=tf.float32, shape=[1_000_000], memory_region_name=f"ipfs://{cid}/values"
    )

    np.testing.assert_array_equal(region.numpy(), values)
    with pytest.raises(tf.errors.InvalidArgumentError, match="empty"):
        tf.raw_ops.ImmutableConst(dtype=tf.float32, shape=[0], memory_region_name=f"{base}/empty")


@pytest.fixture(scope="module")
def shards(here: World, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("shards")
    for shard in range(4):
        with tf.io.TFRecordWriter(str(folder / f"part-{shard}.tfrecord")) as writer:
            for record in range(500):
                writer.write(f"{shard}-{record}-".encode() + bytes(900))
        with tf.io.TFRecordWriter(str(folder / f"part-{shard}.gz"), "GZIP") as writer:
            writer.write(f"zipped {shard}".encode())
    return f"ipfs://{here.content.add(folder).cid}"


def _names(dataset: tf.data.Dataset) -> set[str]:
    return {record.rstrip(b"\0").decode() for record in dataset.as_numpy_iterator()}


EVERY_RECORD = {f"{shard}-{record}-" for shard in range(4) for record in range(500)}


def test_tfrecords_are_read_whole_shuffled_and_interleaved(shards: str) -> None:
    files = gfile.glob(f"{shards}/part-?.tfrecord")
    assert len(files) == 4

    assert _names(tf.data.TFRecordDataset(files)) == EVERY_RECORD
    listed = tf.data.Dataset.list_files(f"{shards}/*.tfrecord", shuffle=True, seed=1)
    interleaved = listed.interleave(
        tf.data.TFRecordDataset, cycle_length=4, num_parallel_calls=4, deterministic=False
    )
    assert _names(interleaved.shuffle(100).prefetch(8)) == EVERY_RECORD
    zipped = tf.data.TFRecordDataset(gfile.glob(f"{shards}/*.gz"), compression_type="GZIP")
    assert _names(zipped) == {f"zipped {shard}" for shard in range(4)}


def test_text_fixed_length_and_csv_datasets(base: str, here: World) -> None:
    table = io.StringIO()
    csv.writer(table).writerows([["x", "y"], [1, 0.5], [2, 1.5]])
    fixed = b"head" + b"".join(f"{number:08}".encode() for number in range(100)) + b"tail"
    other = here.add({"table.csv": table.getvalue().encode(), "fixed": fixed})

    lines = tf.data.TextLineDataset(f"{base}/a.txt").as_numpy_iterator()
    assert list(lines) == [b"first line", b"second line", b"third"]
    records = tf.data.FixedLengthRecordDataset(
        f"ipfs://{other}/fixed", 8, header_bytes=4, footer_bytes=4
    )
    assert [int(record) for record in records.as_numpy_iterator()] == list(range(100))
    rows = tf.data.experimental.CsvDataset(
        f"ipfs://{other}/table.csv", [tf.int32, tf.float32], header=True
    )
    assert [(int(x), float(y)) for x, y in rows] == [(1, 0.5), (2, 1.5)]
    batches = tf.data.experimental.make_csv_dataset(
        f"ipfs://{other}/table.csv", 2, num_epochs=1, shuffle=False
    )
    assert [list(batch["x"].numpy()) for batch in batches] == [[1, 2]]


def test_models_and_checkpoints_load(here: World, tmp_path: Path) -> None:
    model = tf.keras.Sequential([tf.keras.layers.Input((4,)), tf.keras.layers.Dense(3)])
    inputs = np.ones((2, 4), np.float32)
    expected = model(inputs).numpy()
    model.save(tmp_path / "model.keras")
    model.export(tmp_path / "saved", verbose=False)
    tf.train.Checkpoint(model=model).write(str(tmp_path / "checkpoint"))
    base = f"ipfs://{here.content.add(tmp_path).cid}"

    keras_model = tf.keras.models.load_model(f"{base}/model.keras")
    np.testing.assert_array_equal(keras_model(inputs).numpy(), expected)
    saved = tf.saved_model.load(f"{base}/saved")
    np.testing.assert_allclose(saved.serve(inputs).numpy(), expected, rtol=1e-6)
    fresh = tf.keras.Sequential([tf.keras.layers.Input((4,)), tf.keras.layers.Dense(3)])
    tf.train.Checkpoint(model=fresh).read(f"{base}/checkpoint").assert_consumed()
    np.testing.assert_array_equal(fresh(inputs).numpy(), expected)


def test_sixteen_threads_read_at_once(here: World) -> None:
    files = {f"file-{number}": os.urandom(300_000 + number) for number in range(24)}
    files["large"] = os.urandom(20_000_000)
    base = f"ipfs://{here.add(files)}"

    def read(turn: int) -> bool:
        name = f"file-{turn % 24}"
        whole = tf.io.read_file(f"{base}/{name}").numpy() == files[name]
        start = (turn * 7_919_000) % 19_000_000
        with gfile.GFile(f"{base}/large", "rb") as file:
            file.seek(start)
            return bool(whole) and file.read(500_000) == files["large"][start : start + 500_000]

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(read, range(160)))
