"""Whom a worker takes for whom: by the certificates on the cards of its task, and no others."""

import ssl
from collections.abc import Mapping

from trainyard.protocol.cards import PeerCard
from worker_agent.peers.errors import PeerError
from worker_agent.peers.identity import Identity


class Trust:
    def __init__(self, identity: Identity) -> None:
        self._identity = identity
        self.replace({})

    def replace(self, cards: Mapping[int, PeerCard]) -> None:
        """Trust the certificates on these cards, by slot, and no others."""
        slots = {card.fingerprint: slot for slot, card in cards.items()}
        if len(slots) != len(cards):
            raise PeerError("two slots have one certificate: nobody could tell who is who")
        self.cards = dict(cards)
        self._slots = slots
        self.server = self._context(ssl.PROTOCOL_TLS_SERVER, *cards.values())
        # One that was known before must not come back by what was agreed on then.
        self.server.num_tickets = 0

    def slot_of(self, fingerprint: bytes) -> int | None:
        return self._slots.get(fingerprint)

    def card(self, slot: int) -> PeerCard:
        card = self.cards.get(slot)
        if card is None:
            raise PeerError(f"slot {slot} has no worker with a card at present")
        return card

    def client(self, card: PeerCard) -> ssl.SSLContext:
        return self._context(ssl.PROTOCOL_TLS_CLIENT, card)

    def _context(self, protocol: int, *cards: PeerCard) -> ssl.SSLContext:
        context = ssl.SSLContext(protocol)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.check_hostname = False
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_cert_chain(self._identity.path)
        for card in cards:
            context.load_verify_locations(cadata=card.certificate)
        return context
