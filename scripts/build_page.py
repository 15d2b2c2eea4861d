"""Sees to it that whatever is built of the package has the page in it: a hook of hatchling's.

A clone has the page's sources alone, so it is built here, with Node. Where there is no Node, that
is said, and nothing is built: a wheel without its page would fail when somebody looks at it.
"""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

WITHOUT = "TRAINYARD_WITHOUT_PAGE"
_EDITABLE = "editable"
_LEAST_NODE = 20
_SHOWN_LINES = 20


class PageHook(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        # Who works on the tree builds the page with 'make', also anew when it changes.
        if version != _EDITABLE and not os.environ.get(WITHOUT):
            build_page(Path(self.root) / "dapp")


def build_page(dapp: Path) -> None:
    """Build the page if it is not there. SystemExit says what to do where that cannot be."""
    if (dapp / "static" / "index.html").is_file():
        return
    npm = _find_npm()
    web = dapp / "web"
    if not (web / "node_modules" / ".bin" / "vite").exists():
        _run([npm, "ci", "--silent"], web)
    _run([npm, "run", "--silent", "build", "--", "--logLevel", "warn"], web)


def _find_npm() -> str:
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        raise SystemExit(_refusal("Node with npm is not installed"))
    told = subprocess.run([node, "--version"], capture_output=True, text=True).stdout.strip()
    major = told.removeprefix("v").partition(".")[0]
    if not major.isdecimal() or int(major) < _LEAST_NODE:
        raise SystemExit(_refusal(f"Node {told} is too old"))
    return npm


def _run(command: list[str], folder: Path) -> None:
    done = subprocess.run(
        command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    if done.returncode != 0:
        said = "\n".join((done.stdout + done.stderr).strip().splitlines()[-_SHOWN_LINES:])
        raise SystemExit(_refusal(f"'{' '.join(command[:2])}' failed:\n{said}\n"))


def _refusal(why: str) -> str:
    return (
        f"trainyard: the page of the dapp is not built, and cannot be: {why}. "
        f"Install Node {_LEAST_NODE} or newer and try again (Debian: apt-get install nodejs npm), "
        f"or set {WITHOUT}=1 to install without the page: all but the page works then."
    )
