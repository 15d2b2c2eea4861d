"""The cache of verified files."""

import os
import resource
import shutil
from pathlib import Path

import pytest

from trainyard.content.cid import Cid, Codec
from trainyard.iptf.cache import Cache

SIZE = 1000


def _keep(cache: Cache, data: bytes, *, codec: Codec = Codec.DAG_PB, age_s: int = 0) -> Cid:
    """Keep a file whose last opening was `age_s` ago."""
    cid = Cid.of(codec, data)
    partial = cache.begin(cid, len(data))
    partial.write(0, data)
    os.utime(partial.fd, ns=(0, (1_700_000_000 - age_s) * 10**9))
    cache.keep(partial)
    partial.close()
    return cid


def _read(cache: Cache, cid: Cid, size: int = SIZE) -> bytes | None:
    fd = cache.open(cid, size)
    if fd is None:
        return None
    with open(fd, "rb") as file:
        return file.read()


def test_a_file_is_there_for_the_next_gate(tmp_path: Path) -> None:
    cid = _keep(Cache(tmp_path, 10 * SIZE), b"a" * SIZE)

    assert _read(Cache(tmp_path, 10 * SIZE), cid) == b"a" * SIZE


def test_the_least_recently_opened_goes_first_and_stays_readable(tmp_path: Path) -> None:
    cache = Cache(tmp_path, 3 * SIZE)
    first, second = (_keep(cache, name * SIZE, age_s=age) for name, age in [(b"a", 30), (b"b", 20)])
    in_use = cache.open(second, SIZE)
    assert in_use is not None
    os.utime(tmp_path / "files" / str(second), ns=(0, (1_700_000_000 - 20) * 10**9))
    assert _read(cache, first) is not None, "this makes it the most recent"
    third = _keep(cache, b"c" * SIZE, age_s=10)
    fourth = _keep(cache, b"d" * SIZE, age_s=5)

    held = [_read(cache, cid) is not None for cid in (first, second, third, fourth)]
    assert held == [True, False, False, True], "room is made for more than the one"
    assert cache.usage_bytes() <= 3 * SIZE
    with open(in_use, "rb") as file:
        assert file.read() == b"b" * SIZE


def test_a_file_above_the_bound_is_not_kept(tmp_path: Path) -> None:
    cache = Cache(tmp_path, SIZE - 1)
    cid = _keep(cache, b"a" * SIZE)

    assert _read(cache, cid) is None
    assert list((tmp_path / "partial").iterdir()) == []


def test_a_file_that_was_cut_short_is_fetched_again(tmp_path: Path) -> None:
    cache = Cache(tmp_path, 10 * SIZE)
    cid = _keep(cache, b"a" * SIZE)
    path = tmp_path / "files" / str(cid)
    path.chmod(0o600)
    os.truncate(path, SIZE - 1)

    assert _read(cache, cid) is None
    assert not path.exists()


def test_a_single_block_is_verified_each_time(tmp_path: Path) -> None:
    cache = Cache(tmp_path, 10 * SIZE)
    cid = _keep(cache, b"a" * SIZE, codec=Codec.RAW)
    assert _read(cache, cid) == b"a" * SIZE
    path = tmp_path / "files" / str(cid)
    path.chmod(0o600)
    path.write_bytes(b"a" * (SIZE - 1) + b"b")

    assert _read(cache, cid) is None


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """A file of several blocks that an earlier gate kept, as it stands on disk."""
    cid = _keep(Cache(tmp_path, 10 * SIZE), b"a" * SIZE)
    path = tmp_path / "files" / str(cid)
    path.chmod(0o600)
    return path


def test_a_large_file_that_the_disk_changed_is_fetched_again(tmp_path: Path, large: Path) -> None:
    large.write_bytes(b"a" * (SIZE - 1) + b"b")
    cache = Cache(tmp_path, 10 * SIZE)

    assert _read(cache, Cid.parse(large.name)) is None
    assert not large.exists()
    assert list((tmp_path / "sums").iterdir()) == []


def test_a_large_file_is_hashed_once_for_each_gate(tmp_path: Path, large: Path) -> None:
    cache, cid = Cache(tmp_path, 10 * SIZE), Cid.parse(large.name)
    assert _read(cache, cid) == b"a" * SIZE
    (tmp_path / "sums" / large.name).unlink()

    assert _read(cache, cid) == b"a" * SIZE, "nobody looked at the hash"
    assert _read(Cache(tmp_path, 10 * SIZE), cid) is None


def test_a_large_file_without_its_hash_is_not_believed(tmp_path: Path, large: Path) -> None:
    (tmp_path / "sums" / large.name).write_bytes(b"\xff cut sho")

    assert _read(Cache(tmp_path, 10 * SIZE), Cid.parse(large.name)) is None


def test_a_large_file_stays_when_its_hash_cannot_be_opened(tmp_path: Path, large: Path) -> None:
    cache = Cache(tmp_path, 10 * SIZE)
    free = os.open(tmp_path, os.O_RDONLY)
    os.close(free)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Room for the file, and for nothing beside it.
    resource.setrlimit(resource.RLIMIT_NOFILE, (free + 1, before[1]))
    try:
        with pytest.raises(OSError, match="Too many open files"):
            cache.open(Cid.parse(large.name), SIZE)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)

    assert _read(cache, Cid.parse(large.name)) == b"a" * SIZE


def test_a_file_that_another_gate_renewed_is_hashed_again(tmp_path: Path, large: Path) -> None:
    cache, cid = Cache(tmp_path, 10 * SIZE), Cid.parse(large.name)
    assert _read(cache, cid) is not None
    (tmp_path / "new").write_bytes(b"b" * SIZE)
    (tmp_path / "new").rename(large)

    assert _read(cache, cid) is None


def test_hashes_go_with_their_files(tmp_path: Path) -> None:
    cache = Cache(tmp_path, 2 * SIZE)
    for number in range(6):
        _keep(cache, bytes([number]) * SIZE, age_s=10 - number)
    (tmp_path / "sums" / "left").write_text("behind")
    os.utime(tmp_path / "sums" / "left", (0, 0))
    Cache(tmp_path, 2 * SIZE)

    names = [sorted(os.listdir(tmp_path / folder)) for folder in ("files", "sums")]
    assert names[0] == names[1] != []


def test_what_is_on_its_way_counts_and_its_holes_do_not(tmp_path: Path) -> None:
    page = 4096
    cache = Cache(tmp_path, 4 * page)
    kept = _keep(cache, b"a" * 2 * page)
    partial = cache.begin(Cid.of(Codec.DAG_PB, b"x"), 100 * page)
    partial.write(50 * page, b"b" * page)
    assert cache.usage_bytes() == 3 * page
    asked: list[int] = []
    cache.reclaim = lambda: asked.append(cache.usage_bytes())

    partial.write(60 * page, b"b" * 2 * page)

    assert asked == [5 * page], "those who read nothing are asked first"
    assert _read(cache, kept, 2 * page) is None
    assert cache.usage_bytes() == 3 * page
    partial.close()
    assert cache.usage_bytes() == 0


def test_what_a_dead_gate_left_is_swept_and_what_a_live_one_fills_is_not(tmp_path: Path) -> None:
    cache = Cache(tmp_path, 10 * SIZE)
    alive = cache.begin(Cid.of(Codec.RAW, b"x"), SIZE)
    (tmp_path / "partial" / "left").write_bytes(b"behind")
    os.utime(tmp_path / "partial" / "left", (0, 0))
    (tmp_path / "partial" / "young").write_bytes(b"about to be locked")

    Cache(tmp_path, 10 * SIZE)

    names = sorted(path.name for path in (tmp_path / "partial").iterdir())
    assert len(names) == 2
    assert "left" not in names
    alive.close()
    assert [path.name for path in (tmp_path / "partial").iterdir()] == ["young"]


def test_readers_cannot_write(tmp_path: Path) -> None:
    partial = Cache(tmp_path, 10 * SIZE).begin(Cid.of(Codec.RAW, b"x"), SIZE)
    fd = partial.reader()

    with pytest.raises(OSError, match="Bad file descriptor"):
        os.write(fd, b"mine")
    os.close(fd)
    partial.close()


def test_a_full_disk_gets_half_of_it_back(tmp_path: Path) -> None:
    cache = Cache(tmp_path, 10 * SIZE)
    cids = [_keep(cache, bytes([age]) * SIZE, age_s=age) for age in range(4)]
    cache.make_room()

    assert cache.usage_bytes() <= 2 * SIZE
    assert _read(cache, cids[0]) is not None


def test_a_cache_that_others_can_write_to_is_refused(tmp_path: Path) -> None:
    """What stands under a CID's name is believed."""
    (tmp_path / "files").mkdir()
    (tmp_path / "files").chmod(0o777)

    with pytest.raises(PermissionError, match="written by others"):
        Cache(tmp_path, 10 * SIZE)


def test_a_cache_that_was_emptied_goes_on(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache", 10 * SIZE)
    before = cache.begin(Cid.of(Codec.RAW, b"x"), SIZE)
    shutil.rmtree(tmp_path / "cache")

    before.write(0, b"a" * SIZE)
    cache.keep(before)
    after = cache.begin(Cid.of(Codec.RAW, b"y"), SIZE)

    after.close()
    before.close()
