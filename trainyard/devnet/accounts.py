"""The people of a devnet: accounts by name, all from one phrase that is made for this devnet.

Any wallet that takes a phrase has the same accounts in the same places.
"""

import secrets
from collections.abc import Mapping

from eth_account import Account
from eth_account.hdaccount import ETHEREUM_DEFAULT_PATH, key_from_seed, seed_from_mnemonic
from eth_account.hdaccount.mnemonic import Mnemonic
from eth_account.signers.local import LocalAccount
from eth_account.types import Language

from trainyard.devnet.errors import DevnetError
from trainyard.devnet.files import write_whole
from trainyard.devnet.options import Options
from trainyard.devnet.place import Place

_OWNER, _REQUESTER, _FAUCET, _FIRST_WORKER, _FIRST_AUDITOR = 0, 1, 2, 10, 100
_PHRASE_BYTES = 16


def phrase_of(place: Place) -> str:
    """The devnet's phrase, made at first."""
    try:
        return place.mnemonic.read_text().strip()
    except FileNotFoundError:
        phrase = str(Mnemonic(Language.ENGLISH).to_mnemonic(secrets.token_bytes(_PHRASE_BYTES)))
        write_whole(place.mnemonic, phrase + "\n")
        return phrase


def people_of(phrase: str, options: Options) -> Mapping[str, LocalAccount]:
    """Everybody by name: `owner`, `requester`, `worker-1` ..., `auditor-1` ..."""
    if not Mnemonic(Language.ENGLISH).is_mnemonic_valid(phrase):
        raise DevnetError("the phrase in the devnet's folder is damaged: 'trainyard devnet reset'")
    places = {"owner": _OWNER, "requester": _REQUESTER}
    if options.dapp:
        # Gives money to the wallets of whoever tries the page out.
        places["faucet"] = _FAUCET
    workers, auditors = range(options.funded_workers), range(options.auditors)
    # In ranges of their own: who is added later moves nobody.
    places |= {f"worker-{index + 1}": _FIRST_WORKER + index for index in workers}
    places |= {f"auditor-{index + 1}": _FIRST_AUDITOR + index for index in auditors}
    seed = seed_from_mnemonic(phrase, "")
    path = ETHEREUM_DEFAULT_PATH.rsplit("/", 1)[0]
    return {
        name: Account.from_key(key_from_seed(seed, f"{path}/{index}"))
        for name, index in places.items()
    }
