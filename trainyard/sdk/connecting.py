"""Finding a market: the devnet of this machine, an RPC address, or a profile of the user's."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from trainyard.chain.quantities import number_in
from trainyard.chain.rpc import Rpc
from trainyard.content.settings import ContentSettings
from trainyard.iptf.settings import bad_variable
from trainyard.sdk.errors import NoMarketError
from trainyard.sdk.market import Key, KeyFile, Market, Place, PlayKey
from trainyard.sdk.profiles import Profile, default_keystore, profile_named, read_config

if TYPE_CHECKING:
    from trainyard.devnet.devnet import Devnet
    from trainyard.engine.confining import Confinement

DEVNET = "devnet"
_REQUESTER = "requester"


def connect(
    where: str | None = None,
    *,
    market: str | None = None,
    chain_id: int | None = None,
    start_block: int = 0,
    gateways: Sequence[str] = (),
    store: Path | None = None,
    kubo: str | None = None,
    keystore: Path | str | None = None,
    password_file: Path | str | None = None,
    page: str | None = None,
    folder: Path | str | None = None,
    confinement: "Callable[[], Confinement] | None" = None,
) -> Market:
    """A market to train on.

    `where` is the address of an RPC endpoint, with the `market`'s address; or the name of a profile
    in `config.toml`; or "devnet", that of this machine, in its `folder` if it is not the usual one.
    Left out, it is the profile that the user has made the default, and else the devnet.

    The key that pays is never given: it is that of the devnet's requester, or in the encrypted
    `keystore`, whose password is asked for or in `password_file`.
    """
    key = None if keystore is None else _keystore(Path(keystore), password_file)
    if where is not None and where.startswith(("http://", "https://")):
        if market is None:
            raise NoMarketError(f"which market at {where}? Give market='0x…', its address")
        with _naming(is_given=True):
            said = Profile(
                endpoints=(where,),
                market=market,
                chain_id=chain_id,
                start_block=start_block,
                gateways=tuple(gateways),
                store=store,
                kubo=kubo,
                page=page,
            )
        return _by_profile(said, key, password_file, confinement)
    given = (market, chain_id, store, kubo, page)
    if any(one is not None for one in given) or gateways or start_block:
        raise NoMarketError(
            "market, chain_id, start_block, gateways, store, kubo and page go with the address of "
            "an endpoint; a profile and a devnet say them themselves"
        )
    config = read_config()
    name = where or (DEVNET if folder is not None else config.default or DEVNET)
    if name == DEVNET and DEVNET not in config.profiles:
        if key is None and password_file is not None:
            raise NoMarketError(
                "password_file: the key of a devnet's requester has no password; leave it out, or "
                "give the keystore that it opens"
            )
        return _of_devnet(folder, key, confinement)
    return _by_profile(profile_named(config, name), key, password_file, confinement)


def market_of(devnet: "Devnet", confinement: "Callable[[], Confinement] | None" = None) -> Market:
    """The market of a devnet that this process has at hand, with its requester's money."""
    return Market(_place_of(devnet), PlayKey(devnet.accounts[_REQUESTER]), confinement)


def _of_devnet(
    folder: Path | str | None,
    key: Key | None,
    confinement: "Callable[[], Confinement] | None",
) -> Market:
    from trainyard.devnet.devnet import Devnet
    from trainyard.devnet.place import default_folder

    place = default_folder() if folder is None else Path(folder).expanduser().absolute()
    net = Devnet.load(place)
    with _naming():
        found = _place_of(net)
    return Market(found, key or PlayKey(net.accounts[_REQUESTER]), confinement)


def _place_of(net: "Devnet") -> Place:
    return Place(
        endpoints=(net.url,),
        chain_id=net.chain_id,
        market=net.market,
        start_block=net.start_block,
        content=net.content_settings,
        page=net.dapp,
        is_devnet=True,
    )


def _by_profile(
    profile: Profile,
    key: Key | None,
    password_file: Path | str | None,
    confinement: "Callable[[], Confinement] | None",
) -> Market:
    if key is None:
        kept = profile.keystore or default_keystore()
        if profile.keystore is not None or kept.exists():
            key = _keystore(kept, password_file or profile.password_file)
    given: dict[str, Any] = {}
    if profile.store is not None:
        given |= {"store": profile.store, "kubo": None}
    if profile.kubo is not None:
        given["kubo"] = profile.kubo
    if profile.gateways:
        given["gateways"] = ",".join(profile.gateways)
    with _naming():
        content = ContentSettings(**given)
    place = Place(
        endpoints=profile.endpoints,
        chain_id=profile.chain_id or _chain_of(profile.endpoints[0]),
        market=profile.market,
        start_block=profile.start_block,
        content=content,
        page=profile.page,
    )
    return Market(place, key, confinement)


@contextmanager
def _naming(*, is_given: bool = False) -> Iterator[None]:
    """What is wrong is named: an argument, if they are given, or a variable of the environment."""
    try:
        yield
    except ValidationError as error:
        if not is_given:
            raise NoMarketError(
                f"{bad_variable(error, 'TRAINYARD_')}: set another in the environment, or none"
            ) from error
        first = error.errors(include_url=False)[0]
        name = str(first["loc"][0])
        about = Profile.model_fields[name].description
        raise NoMarketError(
            f"{name}: {first['input']!r} will not do ({first['msg']}); give {about}"
        ) from error


def _keystore(path: Path, password_file: Path | str | None) -> Key:
    file = None if password_file is None else Path(password_file).expanduser()
    return KeyFile(path.expanduser(), file)


def _chain_of(endpoint: str) -> int:
    rpc = Rpc(endpoint)
    return number_in(rpc, rpc.request("eth_chainId"))
