"""Our gateway and Kubo's: each end reads from the other, and both send the same blocks."""

import io
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import urllib3

from tests.kubo_adds import kubo_add
from trainyard.content.car import read_car
from trainyard.content.cid import Cid, Codec
from trainyard.content.content import Content
from trainyard.content.embedded import EmbeddedStore
from trainyard.content.errors import BlockNotFoundError
from trainyard.content.gateway_client import GatewaySource
from trainyard.content.gateway_server import GatewayServer
from trainyard.content.kubo_node import KuboNode
from trainyard.content.names import ContentPath

pytest_plugins = ("tests.kubo_nodes",)

RANDOM = random.Random(11)
FILES = {
    "empty": b"",
    "small": b"hello",
    "large": RANDOM.randbytes(3_000_001),
    "repeated": bytes(2_000_000),
    "sub dir/ümlaut": RANDOM.randbytes(300_000),
    **{f"many/file {number:05}": b"%d" % number for number in range(6000)},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("folder")
    for name, data in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    return root


@pytest.fixture(scope="module")
def ours(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Content, Cid]:
    content = Content(EmbeddedStore(tmp_path_factory.mktemp("ours") / "store"))
    return content, content.add(folder).cid


@pytest.fixture(scope="module")
def theirs(kubo_binary: Path, kubo_node: KuboNode, folder: Path) -> Cid:
    return kubo_add(kubo_binary, kubo_node, folder, "--cid-version=1", "--raw-leaves")


@pytest.fixture
def kubo_gateway(kubo_node: KuboNode) -> Iterator[GatewaySource]:
    source = GatewaySource(kubo_node.gateway_url)
    yield source
    source.close()


def test_one_folder_has_one_name(ours: tuple[Content, Cid], theirs: Cid) -> None:
    assert ours[1] == theirs


def test_we_read_from_kubos_gateway(
    kubo_gateway: GatewaySource, theirs: Cid, tmp_path: Path
) -> None:
    content = Content(EmbeddedStore(tmp_path / "store"), [kubo_gateway])

    content.get(ContentPath(theirs), tmp_path / "out")

    content.close()
    written = {
        str(path.relative_to(tmp_path / "out")): path.read_bytes()
        for path in (tmp_path / "out").rglob("*")
        if path.is_file()
    }
    assert written == FILES


def test_we_read_ranges_from_kubos_gateway(
    kubo_gateway: GatewaySource, theirs: Cid, tmp_path: Path
) -> None:
    content = Content(EmbeddedStore(tmp_path / "store"), [kubo_gateway])
    path = ContentPath(theirs, ("large",))

    data = b"".join(map(bytes, content.cat(path, 1_234_567, 600_000)))

    content.close()
    assert data == FILES["large"][1_234_567:1_834_567]


def test_kubos_gateway_says_quickly_what_it_lacks(kubo_gateway: GatewaySource) -> None:
    with pytest.raises(BlockNotFoundError, match=kubo_gateway.name):
        kubo_gateway.fetch(Cid.of(Codec.RAW, b"nobody has this"))


def test_kubo_imports_what_our_gateway_sends(
    ours: tuple[Content, Cid], kubo_binary: Path, tmp_path: Path
) -> None:
    """Into a node that has nothing else, which then reads every file by itself."""
    content, root = ours
    with KuboNode(kubo_binary, tmp_path / "repo") as node:
        api = f"/ip4/127.0.0.1/tcp/{node.ports.api}"
        with GatewayServer(content) as server:
            car = urllib3.request("GET", f"{server.address}/ipfs/{root}?format=car").data

        done = subprocess.run(
            [kubo_binary, "--api", api, "dag", "import", "--stats"],
            input=car,
            capture_output=True,
            timeout=120,
            check=True,
        )
        assert str(root) in done.stdout.decode()
        subprocess.run(
            [kubo_binary, "--api", api, "get", "--output", tmp_path / "out", f"/ipfs/{root}"],
            check=True,
            capture_output=True,
            timeout=120,
        )
    for name, data in list(FILES.items())[:50]:
        assert (tmp_path / "out" / name).read_bytes() == data


@pytest.mark.parametrize(
    "rest",
    [
        "?format=car",
        "?format=car&dag-scope=block",
        "?format=car&dag-scope=entity",
        "/large?format=car",
        "/large?format=car&dag-scope=block",
        "/large?format=car&dag-scope=entity",
        "/large?format=car&dag-scope=entity&entity-bytes=0:0",
        "/large?format=car&dag-scope=entity&entity-bytes=262143:262144",
        "/large?format=car&dag-scope=entity&entity-bytes=-1:*",
        "/large?format=car&dag-scope=entity&entity-bytes=1000000:-1000000",
        "/repeated?format=car&car-dups=y",
        "/repeated?format=car&car-dups=n",
        "/empty?format=car",
        "/small?format=car&dag-scope=entity",
        "/sub%20dir/%C3%BCmlaut?format=car",
        "/many?format=car&dag-scope=entity",
        "/many/file%2001234?format=car&dag-scope=entity",
    ],
)
def test_both_gateways_send_the_same_blocks(
    ours: tuple[Content, Cid], theirs: Cid, kubo_node: KuboNode, rest: str
) -> None:
    content, root = ours
    with GatewayServer(content) as server:
        answers = [
            urllib3.request("GET", f"{base}/ipfs/{root}{rest}")
            for base in (server.address, kubo_node.gateway_url)
        ]

    assert [answer.status for answer in answers] == [200, 200]
    mine, other = (list(read_car(io.BytesIO(answer.data))) for answer in answers)
    assert sorted(mine) == sorted(other)
    if "dag-scope=entity" not in rest:
        assert mine == other


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("{root}?format=raw", 200),
        ("bafkqaaa?format=raw", 200),
        ("bafkreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy?format=raw", 404),
        ("{root}?format=car&dag-scope=half", 400),
    ],
)
def test_both_gateways_answer_alike(
    ours: tuple[Content, Cid], theirs: Cid, kubo_node: KuboNode, path: str, status: int
) -> None:
    content, root = ours
    with GatewayServer(content) as server:
        answers = [
            urllib3.request("GET", f"{base}/ipfs/{path.format(root=root)}")
            for base in (server.address, kubo_node.gateway_url)
        ]

    assert [answer.status for answer in answers] == [status, status]
    if status == 200:
        assert answers[0].data == answers[1].data
        for name in ("content-type", "etag", "x-content-type-options", "cache-control"):
            assert answers[0].headers[name] == answers[1].headers[name]
