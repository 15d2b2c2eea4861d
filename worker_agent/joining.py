"""What a worker shows of itself: its profile in the register, and its card in a task."""

import json
import socket
from collections.abc import Collection, Sequence

from eth_account.signers.local import LocalAccount

import trainyard
from trainyard.content.cid import Cid, Codec
from trainyard.content.content import Content
from trainyard.engine.offers import own_key
from trainyard.engine.signing import address_of
from trainyard.protocol.cards import PeerCard
from trainyard.protocol.commitments import Market
from trainyard.protocol.errors import TransientError
from trainyard.protocol.profiles import Notice, Profile
from worker_agent.peers.identity import own_identity
from worker_agent.progress import CARD, PEER, Shelf
from worker_agent.settings import PeerSettings

_LAST_PORT = 65_535


class NoPortError(TransientError):
    """There is no port left on which others could reach us."""


def publish_profile(
    content: Content, env_class: bytes, gateway: str | None, notices: Sequence[Notice] = ()
) -> bytes:
    """The digest of the document that tells others what this worker is, and where to ask it.

    And what became of tasks that it could not finish.
    """
    agent = f"trainyard/{trainyard.__version__}"
    profile = Profile.of(agent, env_class, gateway, notices)
    return publish_block(content, profile.data)


def publish_block(content: Content, data: bytes) -> bytes:
    """Keep a document as one raw block, and return its digest, which is its name on chain."""
    cid = Cid.of(Codec.RAW, data)
    with content.store.batch() as batch:
        batch.put(cid, data)
        batch.pin(cid)
    return cid.digest


def make_card(
    shelf: Shelf,
    market: Market,
    task: int,
    account: LocalAccount,
    peers: PeerSettings,
    content: Content,
    port: int,
) -> None:
    """Write, sign and publish the card with which `task` is joined."""
    identity = own_identity(shelf.path(PEER), account.address)
    endpoint = f"relay:{peers.relay}" if peers.relay else _endpoint(peers, port)
    card = PeerCard.make(
        market,
        task,
        account.address,
        certificate=identity.certificate,
        endpoints=[endpoint],
        signer=address_of(own_key(shelf.path(PEER))),
        sign=account.sign_typed_data,
    )
    publish_block(content, card.data)
    shelf.write({"digest": card.digest.hex(), "port": port}, CARD)


def has_card(content: Content, digest: bytes) -> bool:
    """Whether the card is in our own store."""
    return content.store.has(Cid(Codec.RAW, digest))


def fetch_card(content: Content, digest: bytes) -> None:
    """Fetch a card into our own store."""
    publish_block(content, content.fetcher.get(Cid(Codec.RAW, digest)).block)


def read_card(content: Content, digest: bytes, market: Market, task: int, worker: str) -> PeerCard:
    data = content.fetcher.get(Cid(Codec.RAW, digest)).block
    return PeerCard.parse(data, market=market, task=task, worker=worker)


def card_port(shelf: Shelf) -> int:
    found = json.loads(shelf.path(CARD).read_bytes())
    return int(found["port"])


def choose_port(
    peers: PeerSettings, count: int, held: Collection[int], promised: Collection[int]
) -> int:
    """Where to listen for one more task: at none of the ports `held` by tasks that we are in.

    Nor at one that is `promised` on a card with which we are not in a task yet, where it can be.
    """
    if not peers.port:
        while (port := _free_port(peers.host)) in held or port in promised:
            pass
        return port
    ports = range(peers.port, min(peers.port + count, _LAST_PORT + 1))
    free = [port for port in ports if port not in held]
    if not free:
        raise NoPortError(
            f"tasks that we are in have all ports from {ports[0]} to {ports[-1]}: choose another "
            "peers.port, or wait until one is over"
        )
    return next((port for port in free if port not in promised), free[0])


def _endpoint(peers: PeerSettings, port: int) -> str:
    """What is on the card; of ports that are forwarded, the one as far from the first as ours."""
    if peers.advertise is None:
        return f"{peers.host}:{port}"
    host, colon, first = peers.advertise.rpartition(":")
    if not peers.port or not colon or not first.isdecimal():
        return peers.advertise
    return f"{host}:{int(first) + port - peers.port}"


def _free_port(host: str) -> int:
    with socket.create_server((host, 0)) as server:
        return int(server.getsockname()[1])
