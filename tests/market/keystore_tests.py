"""Somebody's own key, in an encrypted file, pays on the market of test_sdk.py.

Collected by that module, so that one devnet is enough for all of them.
"""

import json
from pathlib import Path
from typing import TYPE_CHECKING

from eth_account import Account

from trainyard.chain.keystore import create_keystore
from trainyard.protocol.market import TaskState
from trainyard.sdk.results import manifest_of

if TYPE_CHECKING:
    from tests.market.sdk_world import World

_ETHER = 10**18
_PASSWORD = "a good one"
# The usual cost makes each opening take most of a second.
_WORK = 2


def test_a_key_of_ones_own_pays_by_a_profile_and_by_a_password_file_beside_it(
    world: "World", left: int, tmp_path: Path
) -> None:
    """A task that nobody takes, of a class of machines that nobody has."""
    keystore, password, manifest = (tmp_path / name for name in ("key", "password", "m.json"))
    address = create_keystore(keystore, bytes(Account.create().key), _PASSWORD, work=_WORK)
    password.write_text(_PASSWORD)
    password.chmod(0o600)
    world.market.endpoints.call("anvil_setBalance", address, hex(_ETHER))
    document = json.loads(manifest_of(world.market, left).canonical) | {"environment": "11" * 32}
    manifest.write_text(json.dumps(document))
    net, on = world.net, ("--on", "own")
    place = ("--endpoint", net.url, "--market", net.market, "--start-block", net.start_block)
    code, kept = world.command("config", "set", "own", *place, "--keystore", keystore)
    assert code == 0, kept
    try:
        pay = ("post", manifest, *on, "--budget", "0.5 ETH", "--verify", "audit:0")

        code, refused = world.command(*pay)
        assert (code, "nobody can be asked for the password" in refused["error"]) == (1, True)
        code, posted = world.command(*pay, "--password-file", password)

        assert code == 0, posted
        task = world.market.read().book.tasks[posted["task"]]
        assert (task.requester, task.state) == (address, TaskState.OPEN)
        escrow = int(posted["escrow_wei"])
        assert world.market.balance(address) < _ETHER - escrow
        # From here on the profile names the password as well.
        kept = world.command("config", "set", "own", "--password-file", password)[1]
        assert kept["password_file"] == str(password)
        code, cancelled = world.command("cancel", posted["task"], *on)
        assert (code, cancelled["state"]) == (0, "cancelled"), cancelled
        assert int(cancelled["credit_wei"]) == escrow
        code, taken = world.command("account", "withdraw", *on)
        assert (code, taken["to"], int(taken["amount_wei"])) == (0, address, escrow), taken
    finally:
        world.command("config", "remove", "own")
