"""What a machine has beside TensorFlow: a sandbox, a chain to play with, the page, a key to pay."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from trainyard.protocol.errors import TrainyardError

if TYPE_CHECKING:
    from trainyard.engine.checkup import Problem


@dataclass(frozen=True, slots=True)
class Item:
    """One thing by its name: where it is, or why it is not there and what to do about it."""

    name: str
    found: str | None
    what: str = ""
    fix: str = ""

    @property
    def problem(self) -> "Problem | None":
        """None of it is needed by everybody, so none of it makes a machine ill."""
        from trainyard.engine.checkup import Problem

        return Problem(self.what, self.fix, needed=False) if self.what else None


def examine_equipment() -> list[Item]:
    """Look at everything, also where the first thing is missing already."""
    return [_sandbox(), *_chains(), _compiler(), _page(), _market(), _key()]


def _sandbox() -> Item:
    from worker_agent.finding import SandboxError
    from worker_agent.sandbox import find_sandbox

    try:
        return Item("sandbox", str(find_sandbox().bwrap))
    except SandboxError as error:
        what = f"{error.what}, so nothing can be worked on, quoted with a rehearsal or replayed"
        return Item("sandbox", None, what, error.fix)


def _chains() -> Iterator[Item]:
    from trainyard.devnet.errors import DevnetError
    from trainyard.devnet.tools import find_tool

    if shutil.which("node") is None:
        what = "Node is not installed, so no devnet can run here"
        yield Item("ganache", None, what, "install it, for instance with: apt install nodejs npm")
        return
    try:
        yield Item("ganache", str(find_tool("ganache")))
    except DevnetError as error:
        what, _, fix = str(error).partition(": ")
        yield Item("ganache", None, f"{what}, so no devnet can run here", fix)


def _compiler() -> Item:
    from trainyard.iptf.build import BuildError, compiler

    try:
        return Item("compiler", " ".join(compiler()))
    except BuildError as error:
        what, _, fix = str(error).partition(". ")
        return Item("compiler", None, what, fix)


def _page() -> Item:
    from dapp.pages import BUILT

    index = BUILT / "index.html"
    if index.is_file():
        return Item("page", str(index))
    what = "the page is not built, so 'trainyard dapp serve' has its API alone"
    return Item("page", None, what, "run 'make page' in a clone, and install from there")


def _market() -> Item:
    """The market that is meant where none is named."""
    from trainyard.devnet.devnet import Devnet
    from trainyard.devnet.errors import DevnetError
    from trainyard.devnet.place import default_folder
    from trainyard.sdk.profiles import config_file, profile_named, read_config

    try:
        config = read_config()
        if config.default is not None:
            profile_named(config, config.default)
            return Item("market", f"profile {config.default}")
    except TrainyardError as error:
        return Item("market", None, str(error), f"correct {config_file()}")
    try:
        return Item("market", f"devnet at {Devnet.load(default_folder()).url}")
    except DevnetError:
        what = "no market is known by default"
        fix = "start one with 'trainyard devnet up', or name one with 'trainyard config set'"
        return Item("market", None, what, fix)


def _key() -> Item:
    """The key that pays on a real network; a devnet has one of its own."""
    from trainyard.chain.keystore import KeystoreError, address_in
    from trainyard.sdk.profiles import default_keystore, read_config

    try:
        config = read_config()
    except TrainyardError:
        # Said of the market already.
        config = None
    profile = config.profiles.get(config.default or "") if config is not None else None
    path: Path = (profile and profile.keystore) or default_keystore()
    if not path.exists():
        what = f"no key is in {path}, so only a devnet can be paid for"
        return Item("keystore", None, what, "make one with 'trainyard account new'")
    try:
        return Item("keystore", f"{path}, of {address_in(path)}")
    except KeystoreError as error:
        what, _, fix = str(error).partition(": ")
        return Item("keystore", None, what, fix or "name another with 'trainyard config set'")
