"""Workers of one task, each with a key, a card and a plane of its own."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from eth_account import Account
from eth_account.signers.local import LocalAccount
from eth_utils.crypto import keccak

from trainyard.protocol.cards import PeerCard
from trainyard.protocol.commitments import Market
from worker_agent.peers.identity import Identity, own_identity
from worker_agent.peers.plane import PeerPlane

MARKET = Market(1337, "0x1111111111111111111111111111111111111111")
TASK = 7
Answer: TypeAlias = bytes | Path | Exception


def wallet(name: str) -> LocalAccount:
    account: LocalAccount = Account.from_key(keccak(text=name))
    return account


def card_of(identity: Identity, account: LocalAccount, *endpoints: str) -> PeerCard:
    return PeerCard.make(
        MARKET,
        TASK,
        account.address,
        certificate=identity.certificate,
        endpoints=endpoints,
        signer=account.address,
        sign=account.sign_typed_data,
    )


@dataclass
class Peer:
    """One worker: what it is asked is kept, and answered with what lies in `answers`.

    An answer may depend on the body of what was asked.
    """

    slot: int
    folder: Path
    account: LocalAccount
    identity: Identity
    asked: list[tuple[int, str, bytes]]
    answers: dict[str, Answer | Callable[[bytes], Answer]]
    plane: PeerPlane

    @property
    def card(self) -> PeerCard:
        return card_of(self.identity, self.account, *self.plane.endpoints)

    @property
    def doors(self) -> Path:
        return self.folder / "doors"


@contextlib.asynccontextmanager
async def peer(
    slot: int, folder: Path, *, relay: str | None = None, name: str | None = None
) -> AsyncIterator[Peer]:
    account = wallet(name or f"worker {slot}")
    identity = own_identity(folder, account.address)
    asked: list[tuple[int, str, bytes]] = []
    answers: dict[str, Answer | Callable[[bytes], Answer]] = {}

    async def answer(by: int, kind: str, body: bytes) -> bytes | Path:
        asked.append((by, kind, body))
        found = answers[kind]
        given = found(body) if callable(found) else found
        if isinstance(given, Exception):
            raise given
        return given

    plane = PeerPlane(identity, slot, folder=folder / "doors", answer=answer, relay=relay)
    async with plane:
        yield Peer(slot, folder, account, identity, asked, answers, plane)


@contextlib.asynccontextmanager
async def peers(
    folder: Path, count: int = 2, relay: str | None = None
) -> AsyncIterator[list[Peer]]:
    """So many workers that know each other."""
    async with contextlib.AsyncExitStack() as stack:
        all_of_them = [
            await stack.enter_async_context(peer(slot, folder / str(slot), relay=relay))
            for slot in range(count)
        ]
        introduce(all_of_them)
        yield all_of_them


def introduce(those: list[Peer], but: Mapping[int, PeerCard] | None = None) -> None:
    cards = {one.slot: one.card for one in those} | dict(but or {})
    for one in those:
        one.plane.know(cards)


async def echo_at(path: Path) -> asyncio.Server:
    """What would run in the sandbox: it says everything back, and then that it is done."""

    async def say_back(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
        writer.write(b" and that was all")
        writer.close()

    return await asyncio.start_unix_server(say_back, path)


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not holds():
            await asyncio.sleep(0.01)
