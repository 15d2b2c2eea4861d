"""Files on their way into the store: whole, in pieces, and what is refused."""

import hashlib
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import delete, func, select, update

from dapp.database.models import DraftRow, ManifestRow, StoredRow, TaskRow, UploadRow
from dapp.uploads.quota import keep_for_good, sweep_stored
from dapp.uploads.resumable import sweep
from tests.dapp.server import Client, dapp_for, settings_for, wait_for
from tests.dapp.yard import Yard
from trainyard.content.cid import Cid

_PIECES = "application/offset+octet-stream"


@pytest.fixture(scope="module")
def client(
    played: Yard, make_url: Callable[[], str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Client]:
    settings = settings_for(
        played,
        tmp_path_factory.mktemp("dapp"),
        make_url(),
        upload_bytes=4 << 20,
        multipart_bytes=1 << 20,
        pending_upload_bytes=6 << 20,
    )
    with dapp_for(settings) as found:
        yield found


def add(client: Client, *files: tuple[str, bytes]) -> httpx.Response:
    return client.post("/content", files=[("file", one) for one in files])


def begin(client: Client, data: bytes, name: str = "data.npz", **more: Any) -> str:
    answer = client.post("/uploads", json={"name": name, "size": len(data), **more})
    assert answer.status_code == 201, answer.text
    assert answer.headers["location"].endswith(answer.json()["id"])
    return str(answer.json()["id"])


def patch(client: Client, number: str, offset: int, data: bytes) -> httpx.Response:
    headers = {"Upload-Offset": str(offset), "Content-Type": _PIECES}
    return client.patch(f"/uploads/{number}", content=data, headers=headers)


def test_a_file_has_the_cid_of_its_bytes(client: Client) -> None:
    answer = add(client, ("table.csv", b"a,b\n1,2\n"))

    assert answer.status_code == 201
    found = answer.json()
    assert (found["kind"], found["size"], found["files"]) == ("csv", 8, 1)
    raw = client.get(f"/content/{found['cid']}/raw")
    assert raw.content == b"a,b\n1,2\n"
    assert raw.headers["content-disposition"].startswith("attachment")
    assert add(client, ("other.csv", b"a,b\n1,2\n")).json()["cid"] == found["cid"]


def test_a_folder_keeps_its_names(client: Client) -> None:
    found = add(client, ("pets/cat/1.png", b"1"), ("pets/dog/2.png", b"2")).json()

    assert (found["kind"], found["files"], found["name"]) == ("folder", 2, "pets")
    stat = client.json(f"/content/{found['cid']}")
    assert [entry["name"] for entry in stat["entries"]] == ["cat", "dog"]
    assert client.get(f"/content/{found['cid']}/raw").status_code == 404


@pytest.mark.parametrize(
    "name", ["../escape", "a/../../b", "/etc/passwd", "a//b", ".", "..\\windows"]
)
def test_names_that_lead_elsewhere_are_refused(client: Client, name: str) -> None:
    answer = add(client, (name, b"x"), ("plain", b"y"))

    assert answer.status_code in (400, 422), answer.text


def test_two_files_of_one_name_are_refused(client: Client) -> None:
    assert add(client, ("a", b"1"), ("a", b"2")).status_code == 409


def test_a_body_that_is_too_large_is_refused(client: Client) -> None:
    assert add(client, ("large", bytes(2 << 20))).status_code == 413

    def endless() -> Iterator[bytes]:
        for _ in range(64):
            yield bytes(64 << 10)

    # Without a length, it is counted as it comes.
    unbounded = client.post(
        "/content",
        content=endless(),
        headers={"Content-Type": "multipart/form-data; boundary=x"},
    )
    assert unbounded.status_code in (400, 413)


def test_pieces_make_up_a_file(client: Client) -> None:
    data = bytes(range(256)) * 4096
    digest = hashlib.sha256(data).hexdigest()
    number = begin(client, data, sha256=digest)

    first = patch(client, number, 0, data[:300_000])
    assert (first.status_code, first.headers["upload-offset"]) == (204, "300000")
    head = client.head(f"/uploads/{number}")
    assert (head.headers["upload-offset"], head.headers["upload-length"]) == (
        "300000",
        str(len(data)),
    )
    last = patch(client, number, 300_000, data[300_000:])

    assert last.status_code == 200
    cid = last.json()["uploaded"]["cid"]
    assert client.get(f"/content/{cid}/raw").content == data
    assert patch(client, number, 0, b"more").status_code == 409


def test_a_wrong_offset_says_the_right_one(client: Client) -> None:
    number = begin(client, bytes(100))
    patch(client, number, 0, bytes(40))

    answer = patch(client, number, 10, bytes(10))

    assert (answer.status_code, answer.headers["upload-offset"]) == (409, "40")


def test_more_than_was_announced_is_refused(client: Client) -> None:
    number = begin(client, bytes(10))

    assert patch(client, number, 0, bytes(20)).status_code == 413


def test_another_file_than_announced_is_refused(client: Client) -> None:
    number = begin(client, b"hello", sha256="0" * 64)

    assert patch(client, number, 0, b"hello").status_code == 422
    assert client.get(f"/uploads/{number}").status_code == 404


def test_a_broken_line_keeps_what_came(client: Client) -> None:
    data = bytes(3 << 20)
    number = begin(client, data)

    def offset() -> int:
        with httpx.Client(trust_env=False) as other:
            return int(other.get(f"{client.base_url}uploads/{number}").json()["offset"])

    def breaks() -> Iterator[bytes]:
        for start in range(0, 2 << 20, 256 << 10):
            yield data[start : start + (256 << 10)]
        wait_for(lambda: offset() >= 1 << 20, "the first of it")
        raise OSError("the line is down")

    with pytest.raises(OSError, match="down"):
        client.patch(
            f"/uploads/{number}",
            content=breaks(),
            headers={"Upload-Offset": "0", "Content-Type": _PIECES},
        )
    wait_for(lambda: patch(client, number, 0, b"").json()["error"]["code"] != "busy", "the end")
    there = offset()

    assert 1 << 20 <= there <= 2 << 20
    assert patch(client, number, there, data[there:]).status_code == 200


def test_too_much_at_once_is_refused(client: Client) -> None:
    assert client.post("/uploads", json={"name": "a", "size": 5 << 20}).status_code == 413
    held = [begin(client, bytes(3 << 20)) for _ in range(1)]
    too_much = client.post("/uploads", json={"name": "a", "size": 4 << 20})
    assert too_much.status_code == 429
    for number in held:
        assert client.delete(f"/uploads/{number}").status_code == 204


def test_other_types_and_strange_numbers_are_refused(client: Client) -> None:
    number = begin(client, bytes(10))

    plain = client.patch(f"/uploads/{number}", content=b"x", headers={"Upload-Offset": "0"})
    assert plain.status_code == 415
    assert client.get("/uploads/..%2f..%2fetc").status_code in (404, 422)
    assert client.get(f"/uploads/{'a' * 32}").status_code == 404
    client.delete(f"/uploads/{number}")


def test_what_nobody_finishes_is_forgotten(client: Client) -> None:
    services = client.app.state.services
    number = begin(client, bytes(10))

    with services.database.writing() as session:
        session.execute(update(UploadRow).where(UploadRow.id == number).values(expires_at=1))

    assert sweep(services) == 1
    assert not (services.settings.uploads / number).exists()


def held(client: Client) -> int:
    with client.app.state.services.database.reading() as session:
        return int(session.scalar(select(func.coalesce(func.sum(StoredRow.bytes), 0))) or 0)


def test_no_more_is_kept_than_there_is_room_for(client: Client) -> None:
    """Whichever way it comes; and what comes twice counts once."""
    assert add(client, ("twice", b"the same")).status_code == 201
    before = held(client)
    assert add(client, ("again", b"the same")).status_code == 201
    assert held(client) == before
    full = client.app.state.services.settings.stored_bytes - before
    services = client.app.state.services
    with services.database.writing() as session:
        session.add(StoredRow(cid="bafkqaaa", bytes=full - 10, stored_at=int(time.time())))

    refusals = [
        add(client, ("large", bytes(11))),
        client.post("/uploads", json={"name": "a", "size": 11}),
    ]

    for answer in refusals:
        assert (answer.status_code, answer.json()["error"]["code"]) == (507, "store_full")
        assert "TRAINYARD_DAPP_STORED_BYTES" in answer.json()["error"]["fix"]
    assert add(client, ("small", b"0123456789")).status_code == 201
    with services.database.writing() as session:
        session.execute(delete(StoredRow).where(StoredRow.cid == "bafkqaaa"))


def test_one_address_does_not_take_all_the_room(
    played: Yard, make_url: Callable[[], str], tmp_path: Path
) -> None:
    def store(data: bytes, who: str) -> httpx.Response:
        headers = {"X-Forwarded-For": who}
        return other.post("/content", files={"file": data}, headers=headers)

    def announce(size: int, who: str) -> httpx.Response:
        headers = {"X-Forwarded-For": who}
        return other.post("/uploads", json={"name": "a", "size": size}, headers=headers)

    settings = settings_for(
        played, tmp_path, make_url(), proxies=1, stored_bytes=1000, stored_bytes_per_address=100
    )
    with dapp_for(settings) as other:
        assert store(bytes(60), "192.0.2.1").status_code == 201
        assert announce(30, "192.0.2.1").status_code == 201
        for refused in (store(b"1" * 11, "192.0.2.1"), announce(11, "192.0.2.1")):
            assert (refused.status_code, refused.json()["error"]["code"]) == (507, "share_full")
            assert "STORED_BYTES_PER_ADDRESS" in refused.json()["error"]["fix"]
        assert store(b"2" * 90, "192.0.2.2").status_code == 201
        # Whoever has it stored anew is the one who keeps it.
        assert store(bytes(60), "192.0.2.3").status_code == 201
        assert store(b"1" * 70, "192.0.2.1").status_code == 201
        assert store(b"3" * 41, "192.0.2.3").status_code == 507
        assert announce(100, "2001:db8::1").status_code == 201
        assert announce(1, "2001:db8::2").status_code == 507


def aged(client: Client, *cids: str) -> None:
    """As if they had been stored long ago."""
    with client.app.state.services.database.writing() as session:
        old = update(StoredRow).where(StoredRow.cid.in_(cids), StoredRow.stored_at < 2**60)
        session.execute(old.values(stored_at=1))


@contextmanager
def named_by(client: Client, cid: str, ended_at: int | None) -> Iterator[None]:
    """Inside the block a task names it that came to its end then, or has not yet."""
    database = client.app.state.services.database
    with database.writing() as session:
        task = session.scalars(select(TaskRow).limit(1)).one()
        others = update(TaskRow).where(TaskRow.manifest == task.manifest)
        before, digest = task.ended_at, task.manifest
        session.execute(others.values(ended_at=ended_at))
        session.execute(delete(ManifestRow).where(ManifestRow.digest == digest))
        document = f'"ipfs://{cid}"'
        session.add(ManifestRow(digest=digest, document=document, summary="{}", tried_at=0))
    yield
    with database.writing() as session:
        session.execute(update(TaskRow).where(TaskRow.manifest == digest).values(ended_at=before))
        session.execute(delete(ManifestRow).where(ManifestRow.digest == digest))


def test_what_no_task_names_is_let_go(client: Client) -> None:
    services = client.app.state.services
    cids = [add(client, (name, name.encode())).json()["cid"] for name in ("lost", "named", "ours")]
    lost, named, ours = map(Cid.parse, cids)
    keep_for_good(services.database, ours)
    # The same bytes from a stranger once more, which changes nothing.
    assert add(client, ("ours", b"ours")).status_code == 201
    young = Cid.parse(add(client, ("young", b"young")).json()["cid"])
    aged(client, *cids)

    with named_by(client, str(named), None):
        assert sweep_stored(services) == 1

        assert not services.content.store.has(lost)
        for cid in (named, ours, young):
            assert services.content.store.has(cid)
            assert cid in services.content.store.pins()
        assert sweep_stored(services) == 0


def test_a_task_that_is_over_keeps_its_data_no_longer_than_others(client: Client) -> None:
    services, now = client.app.state.services, int(time.time())
    kept_s = services.settings.stored_for_s
    cid = add(client, ("data", b"of a task")).json()["cid"]
    aged(client, cid)

    # It ended, and that is no reason to keep it for as long once more.
    with named_by(client, cid, now - kept_s + 600):
        assert sweep_stored(services) == 0
        with services.database.reading() as session:
            row = session.get(StoredRow, cid)
            assert row is not None
            assert row.stored_at == now - kept_s + 600
    aged(client, cid)
    with named_by(client, cid, now - kept_s):
        assert sweep_stored(services) == 1

    assert not services.content.store.has(Cid.parse(cid))


def test_a_draft_that_was_saved_keeps_its_data(client: Client) -> None:
    services, now = client.app.state.services, int(time.time())
    cid = add(client, ("data", b"of a draft")).json()["cid"]
    aged(client, cid)
    with services.database.writing() as session:
        draft = {"address": "0x" + "11" * 20, "title": "", "created_at": 1, "updated_at": now}
        session.add(DraftRow(id="a" * 32, document=f'{{"data":"ipfs://{cid}"}}', **draft))

    assert sweep_stored(services) == 0
    aged(client, cid)
    with services.database.writing() as session:
        session.execute(delete(DraftRow).where(DraftRow.id == "a" * 32))
    assert sweep_stored(services) == 1


def test_what_is_stored_again_while_it_is_let_go_stays(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    services = client.app.state.services
    cid = add(client, ("data", b"once more")).json()["cid"]
    aged(client, cid)
    unpin = services.content.unpin

    def after_an_upload(given: Cid) -> None:
        assert add(client, ("data", b"once more")).json()["cid"] == cid
        unpin(given)

    monkeypatch.setattr(services.content, "unpin", after_an_upload)
    sweep_stored(services)

    assert Cid.parse(cid) in services.content.store.pins()
    assert client.get(f"/content/{cid}/raw").content == b"once more"


def test_a_manifest_that_comes_from_many_at_once_is_kept(client: Client) -> None:
    document = client.json("/examples")["items"][0]["manifest"]
    with ThreadPoolExecutor(8) as pool:
        answers = list(
            pool.map(lambda _: client.post("/manifests", json={"manifest": document}), range(8))
        )

    assert [one.status_code for one in answers] == [200] * 8
    assert len({one.json()["digest"] for one in answers}) == 1
    found = client.json(f"/manifests/{answers[0].json()['digest']}")
    assert found["manifest"]["model"] == answers[0].json()["manifest"]["model"]


@pytest.mark.parametrize("cid", ["nonsense", "bafy", "http:", "Qm" + "1" * 44])
def test_only_cids_are_taken(client: Client, cid: str) -> None:
    assert client.get(f"/content/{cid}").status_code in (404, 422)
    assert client.post("/models", json={"cid": cid}).status_code in (404, 422)
