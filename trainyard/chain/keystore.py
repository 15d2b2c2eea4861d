"""A key in an encrypted file, and the password that opens it.

The password comes from a terminal, a file or a credential of systemd's: never from the command line
or the environment, which other processes can read.
"""

import getpass
import json
import os
import stat
import sys
from pathlib import Path
from typing import Any

from eth_account import Account
from eth_account.signers.local import LocalAccount
from eth_utils.address import to_checksum_address

from trainyard.protocol.errors import PermanentError

# The name under which systemd hands the password over, see `service.py`.
CREDENTIAL = "trainyard-password"
_KEY_BYTES = 32


class KeystoreError(PermanentError):
    """The key cannot be opened or kept; the message says why, and what helps."""


def create_keystore(path: Path, key: bytes, password: str, *, work: int | None = None) -> str:
    """Encrypt a key into a new file; its address. A file that is there is never touched.

    `work` is scrypt's cost, if not the usual one, which takes most of a second.
    """
    account = Account.from_key(key)
    sealed = json.dumps(Account.encrypt(key, password, kdf="scrypt", iterations=work))
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with open(handle, "w", encoding="utf-8") as out:
            out.write(sealed)
            out.flush()
            os.fsync(out.fileno())
        # Unlike a rename, it fails where there is a file already.
        os.link(fresh, path)
    except FileExistsError:
        raise KeystoreError(f"there is a key in {path} already: it is not replaced") from None
    finally:
        fresh.unlink()
    return str(account.address)


def open_keystore(path: Path, password: str) -> LocalAccount:
    sealed = _read(path)
    try:
        key = Account.decrypt(sealed, password)
    except ValueError as error:
        if "MAC mismatch" in str(error):
            raise KeystoreError(f"wrong password for {path}") from None
        raise _damaged(path) from error
    except (KeyError, TypeError, AttributeError, NotImplementedError) as error:
        raise _damaged(path) from error
    account: LocalAccount = Account.from_key(key)
    return account


def address_in(path: Path) -> str:
    """Whose key it is, which the file says openly."""
    try:
        return str(to_checksum_address(_read(path)["address"]))
    except (KeyError, ValueError, TypeError) as error:
        raise _damaged(path) from error


def read_key(text: str) -> bytes:
    """A key as 64 hexadecimal digits, as other programs export it."""
    try:
        key = bytes.fromhex(text.strip().removeprefix("0x"))
    except ValueError:
        key = b""
    if len(key) != _KEY_BYTES:
        # Without its text, which may be a key with a slip.
        raise KeystoreError("that is no private key: 64 hexadecimal digits are")
    return key


def has_password(file: Path | None) -> bool:
    """Whether `find_password` would ask nobody."""
    folder = os.environ.get("CREDENTIALS_DIRECTORY")
    return file is not None or (folder is not None and (Path(folder) / CREDENTIAL).exists())


def find_password(file: Path | None, *, prompt: str = "Password of the key: ") -> str:
    """The password from the file named, else from systemd, else from whoever sits there."""
    if file is not None:
        return _from_file(file, private=True)
    if folder := os.environ.get("CREDENTIALS_DIRECTORY"):
        handed = Path(folder) / CREDENTIAL
        if handed.exists():
            return _from_file(handed, private=False)
    if not sys.stdin.isatty():
        raise KeystoreError(
            "nobody can be asked for the password here: name its file with --password-file, "
            f"or have systemd load the credential {CREDENTIAL}"
        )
    return _not_empty(getpass.getpass(prompt), "that")


def _from_file(path: Path, *, private: bool) -> str:
    try:
        if private and stat.S_IMODE(path.stat().st_mode) & 0o077:
            raise KeystoreError(f"others can read the password in {path}: run 'chmod 600 {path}'")
        text = path.read_text()
    except FileNotFoundError:
        raise KeystoreError(f"there is no password file {path}: write one, or go without") from None
    except UnicodeDecodeError:
        raise KeystoreError(f"the password in {path} is no text") from None
    return _not_empty(text.removesuffix("\n").removesuffix("\r"), str(path))


def _not_empty(password: str, where: str) -> str:
    if not password:
        raise KeystoreError(f"{where} is an empty password: choose another")
    return password


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text())
    except FileNotFoundError:
        raise KeystoreError(
            f"there is no key in {path}: 'trainyard worker init' makes one for a worker, and "
            "'trainyard account new' one that pays"
        ) from None
    except ValueError as error:
        raise _damaged(path) from error
    if not isinstance(found, dict):
        raise _damaged(path)
    return found


def _damaged(path: Path) -> KeystoreError:
    return KeystoreError(f"{path} is no keystore that can be read: restore it from your backup")
