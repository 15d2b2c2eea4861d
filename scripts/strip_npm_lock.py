"""Copies an npm lock without its addresses: hashes identify packages, any mirror serves them."""

import json
import sys
from pathlib import Path

ADDRESS_KEYS = ("resolved", "funding")


def strip_addresses(lock: str) -> str:
    content = json.loads(lock)
    for package in content["packages"].values():
        for key in ADDRESS_KEYS:
            package.pop(key, None)
    return json.dumps(content, indent=2) + "\n"


def main() -> None:
    source, target = map(Path, sys.argv[1:])
    target.write_text(strip_addresses(source.read_text()))


if __name__ == "__main__":
    main()
