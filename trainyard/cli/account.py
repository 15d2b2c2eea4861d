"""`trainyard account`: the key that pays, in an encrypted file."""

from pathlib import Path
from typing import Annotated

import typer

from trainyard.cli.failing import EXIT_CODES_HELP, WrongUseError, telling_failures
from trainyard.cli.market import Site, at_market
from trainyard.cli.output import Output

account = typer.Typer(
    name="account",
    help="The key that pays for tasks, in an encrypted file of its own.",
    epilog=EXIT_CODES_HELP,
    no_args_is_help=True,
)
Keystore = Annotated[
    Path | None,
    typer.Option(help="Where the key is; else key.json beside config.toml.", dir_okay=False),
]
PasswordFile = Annotated[
    Path | None, typer.Option(help="The password; else it is asked for.", dir_okay=False)
]
Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON document on stdout, and nothing else.")
]


@account.command(epilog=EXIT_CODES_HELP)
def new(
    keystore: Keystore = None, password_file: PasswordFile = None, as_json: Json = False
) -> None:
    """Make a new key. A file that is there is never touched.

    Example: 'trainyard account new --password-file ~/.trainyard-password'.
    """
    with telling_failures(as_json):
        import secrets

        _keep(secrets.token_bytes(32), keystore, password_file, Output(as_json))


@account.command(name="import", epilog=EXIT_CODES_HELP)
def import_(
    key_file: Annotated[
        Path, typer.Argument(help="A file with 64 hexadecimal digits; - reads them from stdin.")
    ],
    keystore: Keystore = None,
    password_file: PasswordFile = None,
    as_json: Json = False,
) -> None:
    """Encrypt a key that another wallet has exported. Remove the plain file afterwards.

    Example: 'trainyard account import key.hex'.
    """
    with telling_failures(as_json):
        import sys

        from trainyard.chain.keystore import read_key

        text = sys.stdin.read() if str(key_file) == "-" else key_file.read_text()
        _keep(read_key(text), keystore, password_file, Output(as_json))


@account.command(epilog=EXIT_CODES_HELP)
@at_market
def balance(site: Site) -> None:
    """Show what the account has: in its wallet, and credited in the market.

    Example: 'trainyard account balance --on sepolia'.
    """
    from trainyard.protocol.telling import amount

    with site.open() as market:
        address = market.owner or market.account.address
        wallet, credit = market.balance(address), market.client.account(address).credit
    site.output.result(
        {"address": address, "balance_wei": str(wallet), "credit_wei": str(credit)},
        [address, f"in the wallet {amount(wallet)}", f"credited      {amount(credit)}"],
    )


@account.command(epilog=EXIT_CODES_HELP)
@at_market
def withdraw(
    site: Site,
    amount: Annotated[
        str | None, typer.Option(help='How much, such as "0.1 ETH"; else all that is credited.')
    ] = None,
    to: Annotated[str | None, typer.Option(help="To whom; else to the account itself.")] = None,
) -> None:
    """Take out what the market has credited: what came back of tasks, and of cheats' stakes.

    Example: 'trainyard account withdraw'.
    """
    from trainyard.protocol import telling
    from trainyard.sdk.wishing import wei_of

    with site.open() as market:
        address = market.account.address
        credit = market.client.account(address).credit
        wei = credit if amount is None else wei_of(amount, "amount")
        if not wei or wei > credit:
            raise WrongUseError(f"{telling.amount(credit)} are credited: there is no more to take")
        target = to or address
        transaction = market.send("withdraw", market.calls.withdraw(target, wei))
    site.output.result(
        {"to": target, "amount_wei": str(wei), "transaction": f"0x{transaction.hex()}"},
        [f"{telling.amount(wei)} went to {target}"],
    )


def _keep(key: bytes, keystore: Path | None, password_file: Path | None, output: Output) -> None:
    from trainyard.chain.keystore import create_keystore, find_password
    from trainyard.sdk.profiles import default_keystore

    path = (keystore or default_keystore()).expanduser()
    password = find_password(password_file, prompt="A password for the key: ")
    if password_file is None and find_password(None, prompt="The same again: ") != password:
        raise WrongUseError("these are two different passwords: try again")
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    address = create_keystore(path, key, password)
    output.result(
        {"address": address, "keystore": str(path)},
        [f"the key of {address} is in {path}", "keep a copy of that file, and the password"],
    )
