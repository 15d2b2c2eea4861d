"""Copies an npm lock without its addresses: hashes identify packages, any mirror serves them."""

import json
import sys
from pathlib import Path
from typing import Any

ADDRESS_KEYS = ("resolved", "funding")


def strip_addresses(lock: str) -> str:
    content = json.loads(lock)
    packages: dict[str, dict[str, Any]] = content["packages"]
    locked = {place.rpartition("node_modules/")[2] for place in packages}
    for package in packages.values():
        for key in ADDRESS_KEYS:
            package.pop(key, None)
        # Builds for other systems, which mirrors need not have: `npm ci` wants all or none.
        optional = package.get("optionalDependencies", {})
        for name in [name for name in optional if name not in locked]:
            del optional[name]
    return json.dumps(content, indent=2) + "\n"


def main() -> None:
    source, target = map(Path, sys.argv[1:])
    target.write_text(strip_addresses(source.read_text()))


if __name__ == "__main__":
    main()
