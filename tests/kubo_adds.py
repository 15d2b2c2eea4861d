"""What Kubo itself makes of a file or folder."""

import json
import subprocess
from pathlib import Path

from trainyard.content.cid import Cid
from trainyard.content.kubo_node import KuboNode
from trainyard.content.kubo_rpc import KuboRpc, Upload


def kubo_cid(node: KuboNode, content: bytes, *options: tuple[str, str]) -> Cid:
    """The CID that Kubo's own `add` gives to a file; nothing is stored."""
    rpc = KuboRpc(node.api_url)
    answer = rpc.call(
        "add",
        ("cid-version", "1"),
        ("raw-leaves", "true"),
        ("only-hash", "true"),
        ("quieter", "true"),
        *options,
        upload=Upload([content], len(content)),
    )
    rpc.close()
    return Cid.parse(json.loads(answer)["Hash"])


def kubo_add(binary: Path, node: KuboNode, path: Path, *options: str) -> Cid:
    """The CID that Kubo's command gives to a file or folder, which it stores."""
    api = f"/ip4/127.0.0.1/tcp/{node.ports.api}"
    command = [str(binary), "--api", api, "add", "--recursive", "--quieter", *options, str(path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=300)
    return Cid.parse(done.stdout.strip())
