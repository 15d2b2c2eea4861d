"""The gateways that workers name in their profiles, as sources of what a task has to show."""

from collections.abc import Iterable, Sequence

from trainyard.content.cid import Cid, Codec
from trainyard.content.content import Content
from trainyard.content.gateway_client import GatewaySource
from trainyard.protocol.errors import TrainyardError
from trainyard.protocol.profiles import Profile

# A stranger that says nothing has less time than whom the operator chose: what it costs is waited
# for whenever nobody has a block.
_STRANGER_S = 10.0


def ask_workers(content: Content, profiles: Iterable[bytes], *, allow_private: bool) -> list[str]:
    """Let `content` ask those whose profiles have these digests as well, and say where.

    A profile that nobody has, or that is none, is passed over: its worker harms itself alone.
    """
    found = _gateways(content, list(dict.fromkeys(profiles)))
    content.fetcher.add_sources(
        GatewaySource(address, timeout_s=_STRANGER_S, public_only=not allow_private)
        for address in found
    )
    return found


def _gateways(content: Content, digests: Sequence[bytes]) -> list[str]:
    coming = [content.fetcher.submit(Cid(Codec.RAW, digest)) for digest in digests]
    found = dict[str, None]()
    for one in coming:
        try:
            gateway = Profile.parse(one.result().block).gateway
        except TrainyardError:
            continue
        if gateway is not None:
            found[gateway] = None
    return list(found)
