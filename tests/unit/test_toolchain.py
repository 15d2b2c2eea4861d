"""Which Solidity compiler the set-up links."""

from pathlib import Path

from scripts.toolchain.link import ROOT, choose_compiler


def test_native_compiler_of_the_pinned_version_is_preferred(tmp_path: Path) -> None:
    native = tmp_path / ".solcx" / "solc-v0.8.37"
    native.parent.mkdir()
    native.touch(mode=0o755)

    assert choose_compiler("0.8.37", tmp_path) == native


def test_another_native_version_is_of_no_use(tmp_path: Path) -> None:
    native = tmp_path / ".solcx" / "solc-v0.8.36"
    native.parent.mkdir()
    native.touch(mode=0o755)

    assert choose_compiler("0.8.37", tmp_path) == ROOT / "scripts" / "solc" / "solc.js"
