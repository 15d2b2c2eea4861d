"""The agent's key: encrypted, whole or not at all, and opened by a password from a safe place."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from trainyard.chain.keystore import (
    KeystoreError,
    address_in,
    create_keystore,
    find_password,
    open_keystore,
    read_key,
)

KEY = bytes.fromhex("4c0883a69102937d6231471b5dbb6204fe5129617082792ae468d01a3f362318")
ADDRESS = "0x2c7536E3605D9C16a7a3D7b1898e529396a65c23"
# Scrypt's cost is no matter here, and most of a second otherwise.
LITTLE_WORK = 2


@pytest.fixture
def keystore(tmp_path: Path) -> Path:
    path = tmp_path / "keystore.json"
    assert create_keystore(path, KEY, "secret", work=LITTLE_WORK) == ADDRESS
    return path


def test_key_comes_back_with_its_password(keystore: Path) -> None:
    assert bytes(open_keystore(keystore, "secret").key) == KEY
    assert address_in(keystore) == ADDRESS


def test_file_is_its_owners_alone_and_shows_no_key(keystore: Path) -> None:
    assert keystore.stat().st_mode & 0o777 == 0o600
    assert KEY.hex() not in keystore.read_text()
    assert [entry.name for entry in keystore.parent.iterdir()] == ["keystore.json"]


def test_usual_cost_is_scrypts_and_not_a_toy(tmp_path: Path) -> None:
    create_keystore(tmp_path / "key", KEY, "secret")
    assert '"kdf": "scrypt"' in (tmp_path / "key").read_text()
    assert '"n": 262144' in (tmp_path / "key").read_text()


def test_wrong_password_is_one_clear_line(keystore: Path) -> None:
    with pytest.raises(KeystoreError, match=r"^wrong password for .*keystore\.json$"):
        open_keystore(keystore, "secreT")


def test_key_that_is_there_is_never_replaced(keystore: Path) -> None:
    before = keystore.read_bytes()
    with pytest.raises(KeystoreError, match="already"):
        create_keystore(keystore, bytes(31) + b"\1", "other", work=LITTLE_WORK)
    assert keystore.read_bytes() == before
    assert len(list(keystore.parent.iterdir())) == 1


@pytest.mark.parametrize("damage", ["", "[]", "{}", '{"crypto": 1}', '{"address": "xyz"}', "\0"])
def test_damaged_file_is_told_apart_from_a_wrong_password(tmp_path: Path, damage: str) -> None:
    (tmp_path / "key").write_text(damage)
    with pytest.raises(KeystoreError, match="no keystore that can be read"):
        open_keystore(tmp_path / "key", "secret")
    with pytest.raises(KeystoreError, match="no keystore that can be read"):
        address_in(tmp_path / "key")


def test_missing_file_is_named_with_its_fix(tmp_path: Path) -> None:
    with pytest.raises(KeystoreError, match="trainyard worker init"):
        address_in(tmp_path / "key")


@pytest.mark.parametrize("text", ["", "0x12", "zz" * 32, KEY.hex() + "00"])
def test_what_is_no_key_is_refused_without_being_repeated(text: str) -> None:
    with pytest.raises(KeystoreError) as refused:
        read_key(text)
    assert not text or text not in str(refused.value)


def test_key_is_read_as_others_write_it() -> None:
    assert read_key(f"0x{KEY.hex()}\n") == read_key(KEY.hex()) == KEY


class TestPassword:
    @pytest.fixture(autouse=True)
    def _no_credentials(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("CREDENTIALS_DIRECTORY", raising=False)

    def file(self, folder: Path, text: str, mode: int = 0o600) -> Path:
        path = folder / "trainyard-password"
        path.write_text(text)
        path.chmod(mode)
        return path

    def test_from_a_file_without_its_last_line_end(self, tmp_path: Path) -> None:
        assert find_password(self.file(tmp_path, " a b \n")) == " a b "

    def test_file_that_others_can_read_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(KeystoreError, match="run 'chmod 600"):
            find_password(self.file(tmp_path, "a\n", 0o640))

    def test_empty_or_missing_file_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(KeystoreError, match="empty password"):
            find_password(self.file(tmp_path, "\n"))
        with pytest.raises(KeystoreError, match="no password file"):
            find_password(tmp_path / "none")

    def test_from_systemd(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.file(tmp_path, "handed over", 0o440)
        monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
        assert find_password(None) == "handed over"

    def test_nobody_is_asked_where_nobody_sits(self) -> None:
        asked = subprocess.run(
            [sys.executable, "-c", _ASK], stdin=subprocess.DEVNULL, capture_output=True, text=True
        )
        assert "name its file with --password-file" in asked.stderr

    def test_from_a_terminal_without_an_echo(self) -> None:
        process, terminal = pty.fork()
        if process == 0:
            os.execv(sys.executable, [sys.executable, "-c", _ASK])  # noqa: S606
        shown = b""
        while b"Password" not in shown:
            shown += os.read(terminal, 1000)
        os.write(terminal, b"typed\n")
        while b"<typed>" not in shown:
            shown += os.read(terminal, 1000)
        os.waitpid(process, 0)
        os.close(terminal)
        assert shown.count(b"typed") == 1


_ASK = "from trainyard.chain.keystore import find_password; print(f'<{find_password(None)}>')"
