"""Links the Solidity compiler into the environment and makes its tools find it.

A native compiler that py-solc-x installed for this user is taken where it is the pinned version,
because it is several times faster. Otherwise the WebAssembly build from npm takes its place.
"""

import json
import os
import shutil
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
START_HOOK = Path(__file__).with_name("trainyard_toolchain.py")


def pinned_solc_version() -> str:
    package = json.loads((ROOT / "package.json").read_text())
    return str(package["devDependencies"]["solc"])


def choose_compiler(version: str, home: Path) -> Path:
    native = home / ".solcx" / f"solc-v{version}"
    return native if os.access(native, os.X_OK) else ROOT / "scripts" / "solc" / "solc.js"


def link_compiler(version: str, target: Path) -> Path:
    folder = Path(sys.prefix) / "solcx"
    # py-solc-x takes every file here for a version on offer: leave none of an earlier pin.
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    link = folder / f"solc-v{version}"
    inside = target.is_relative_to(ROOT)
    link.symlink_to(os.path.relpath(target, folder) if inside else target)
    return link


def install_start_hook() -> None:
    packages = Path(sysconfig.get_path("purelib"))
    shutil.copy(START_HOOK, packages)
    (packages / f"{START_HOOK.stem}.pth").write_text(f"import {START_HOOK.stem}\n")


def main() -> None:
    if sys.prefix == sys.base_prefix:
        sys.exit("link.py changes the environment it runs in: run it with .venv/bin/python")
    version = pinned_solc_version()
    compiler = choose_compiler(version, Path.home())
    link_compiler(version, compiler)
    install_start_hook()
    kind = "WebAssembly, from npm" if compiler.is_relative_to(ROOT) else f"native, {compiler}"
    print(f"Solidity compiler {version} ({kind})")


if __name__ == "__main__":
    main()
