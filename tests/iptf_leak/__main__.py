"""Looks for leaks, bad accesses and races: `python -m tests.iptf_leak [address|thread|valgrind]…`.

The plugin's own sources, with a driver in TensorFlow's place, against a real gate.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from trainyard.content.content import Content
from trainyard.content.embedded import EmbeddedStore
from trainyard.iptf.build import SOURCES, compile_to, installed_tensorflow
from trainyard.iptf.launching import GateProcess

HERE = Path(__file__).parent
TURNS = {"address": 20, "thread": 10, "valgrind": 6}
LONGEST_S = 900
VALGRIND = (
    "valgrind",
    "--quiet",
    "--error-exitcode=1",
    "--leak-check=full",
    "--errors-for-leak-kinds=definite,indirect,possible",
    "--child-silent-after-fork=yes",
)


def build(kind: str, folder: Path) -> Path:
    """The driver and the plugin in one program, watched by a sanitizer unless valgrind does it."""
    target = folder / f"driver-{kind}"
    watched = [] if kind == "valgrind" else [f"-fsanitize={kind}"]
    sources = [str(path) for path in (HERE / "driver.cc", *sorted(SOURCES.glob("*.cc")))]
    arguments = ["-g", "-O1", "-fno-omit-frame-pointer", "-pthread", *watched, *sources]
    compile_to(target, arguments, installed_tensorflow().include)
    return target


def check(kind: str) -> int:
    """0 if the driver found nothing, and neither did whoever watched it."""
    with tempfile.TemporaryDirectory(prefix="iptf-leak-") as name:
        folder = Path(name)
        files = folder / "files"
        files.mkdir()
        (files / "large").write_bytes(os.urandom(5_000_000))
        (files / "small").write_bytes(os.urandom(20_000))
        cid = Content(EmbeddedStore(folder / "store")).add(files).cid
        driver = build(kind, folder)
        gate = GateProcess(
            {
                "TRAINYARD_STORE": str(folder / "store"),
                "IPTF_CACHE": str(folder / "cache"),
                # Nothing stays cached, so every turn goes all the way.
                "IPTF_CACHE_BYTES": "1",
            }
        )
        try:
            prefix = VALGRIND if kind == "valgrind" else ()
            turns = str(TURNS[kind])
            return subprocess.run(
                [*prefix, str(driver), f"iptf://ipfs/{cid}", "iptf://mfs/leak", turns],
                env={**os.environ, "IPTF_SOCKET": str(gate.socket)},
                timeout=LONGEST_S,
                check=False,
            ).returncode
        finally:
            gate.stop()


def main() -> int:
    kinds = sys.argv[1:] or ["address", "thread"]
    failed = 0
    for kind in kinds:
        if kind not in TURNS:
            print(f"{kind}: choose from {', '.join(TURNS)}", file=sys.stderr)
            return 2
        if kind == "valgrind" and shutil.which("valgrind") is None:
            print("valgrind is missing (Debian: apt-get install valgrind)", file=sys.stderr)
            return 2
        code = check(kind)
        print(f"{kind}: {'nothing found' if code == 0 else f'exit code {code}'}", flush=True)
        failed |= code != 0
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
