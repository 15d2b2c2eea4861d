"""What a worker shows of itself: its profile in the register, and its card in a task."""

import json
import socket

from eth_account.signers.local import LocalAccount

import trainyard
from trainyard.content.cid import Cid, Codec
from trainyard.content.content import Content
from trainyard.engine.offers import own_key
from trainyard.engine.signing import address_of
from trainyard.protocol.cards import PeerCard
from trainyard.protocol.commitments import Market
from trainyard.protocol.manifest.canonical import canonical
from worker_agent.peers.identity import own_identity
from worker_agent.progress import CARD, Shelf
from worker_agent.settings import PeerSettings

PEER = "peer"


def publish_profile(content: Content, env_class: bytes) -> bytes:
    """The digest of the document that tells others what this worker is."""
    document = {
        "version": 1,
        "agent": f"trainyard/{trainyard.__version__}",
        "class": env_class.hex(),
    }
    return publish_block(content, canonical(document))


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
) -> None:
    """Write, sign and publish the card with which `task` is joined."""
    identity = own_identity(shelf.path(PEER), account.address)
    port = peers.port or _free_port(peers.host)
    endpoint = f"relay:{peers.relay}" if peers.relay else peers.advertise or f"{peers.host}:{port}"
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


def _free_port(host: str) -> int:
    with socket.create_server((host, 0)) as server:
        return int(server.getsockname()[1])
