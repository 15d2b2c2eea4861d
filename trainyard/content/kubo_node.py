"""A Kubo node of our own: private, on loopback, and gone when we are.

Nothing that it does by itself reaches out: no bootstrap, no discovery, no routing, no relay, no
port mapping, no fetched configuration, no certificates, no telemetry. It talks to the peers that it
is told to connect to.
"""

import contextlib
import json
import os
import signal
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from trainyard.content.errors import SourceError
from trainyard.content.kubo_rpc import KuboRpc, parse_api_address
from trainyard.content.lifeline import dying_with_parent
from trainyard.protocol.errors import TransientError

_POLL_S = 0.05
_LOG_TAIL_BYTES = 4000


class KuboNodeError(TransientError):
    """The node did not start, or stopped by itself; the message ends with its log."""


@dataclass(frozen=True, slots=True)
class Ports:
    """Where a node listens on 127.0.0.1; 0 is any free port."""

    api: int = 0
    gateway: int = 0
    swarm: int = 0


class KuboNode:
    """A node with its repository in one folder. A context manager: it runs inside the block."""

    def __init__(
        self,
        binary: Path,
        repo: Path,
        *,
        ports: Ports | None = None,
        gateway_fetches: bool = False,
        start_timeout_s: float = 60.0,
        stop_timeout_s: float = 20.0,
    ) -> None:
        """`gateway_fetches`: whether its gateway asks peers for blocks, or says 404 at once."""
        self.repo = repo
        self._binary, self._ports, self._gateway_fetches = binary, ports or Ports(), gateway_fetches
        self._start_timeout_s, self._stop_timeout_s = start_timeout_s, stop_timeout_s
        self._run: _Run | None = None
        self._rpc: KuboRpc | None = None
        self._gateway = ("", 0)
        self._identity: dict[str, Any] = {}

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def api_url(self) -> str:
        return f"http://{self._running_rpc.host}:{self._running_rpc.port}"

    @property
    def gateway_url(self) -> str:
        return "http://{}:{}".format(*self._gateway)

    @property
    def peer_id(self) -> str:
        return str(self._identity["ID"])

    @property
    def addresses(self) -> tuple[str, ...]:
        """Where other nodes reach this one: what `connect` and a manifest's hints take."""
        return tuple(self._identity.get("Addresses") or ())

    @property
    def ports(self) -> Ports:
        """The ports in use, with which a restarted node is found where it was."""
        return Ports(self._running_rpc.port, self._gateway[1], int(self.addresses[0].split("/")[4]))

    @property
    def pid(self) -> int:
        return self._alive.process.pid

    @property
    def running(self) -> bool:
        return self._run is not None and not self._run.ended.is_set()

    def start(self) -> None:
        """Start, and wait until it answers."""
        if self.running:
            raise KuboNodeError(f"the node in {self.repo} is running already")
        self._prepare()
        # Left by a node that was killed, they would be taken for those of the new one.
        for name in ("api", "gateway"):
            (self.repo / name).unlink(missing_ok=True)
        self._run = _Run(
            [str(self._binary), "daemon", "--migrate=true"], self._environment(), self._log
        )
        try:
            self._wait_until_ready()
        except BaseException:
            self.kill()
            raise

    def stop(self) -> None:
        """Let it finish what it does; past the grace period, end it."""
        if self._run is None:
            return
        self._signal(signal.SIGTERM)
        if not self._run.ended.wait(self._stop_timeout_s):
            self._signal(signal.SIGKILL)
        self._end()

    def kill(self) -> None:
        """End it without warning, as a crash would."""
        if self._run is not None:
            self._signal(signal.SIGKILL)
            self._end()

    def connect(self, other: "KuboNode", *, timeout_s: float = 20.0) -> None:
        """Make the two exchange blocks."""
        self._running_rpc.call("swarm/connect", ("arg", other.addresses[0]), timeout_s=timeout_s)

    @property
    def _alive(self) -> "_Run":
        if self._run is None:
            raise KuboNodeError(f"the node in {self.repo} is not running")
        return self._run

    @property
    def _running_rpc(self) -> KuboRpc:
        if self._rpc is None:
            raise KuboNodeError(f"the node in {self.repo} is not running")
        return self._rpc

    @property
    def _log(self) -> Path:
        return self.repo / "trainyard.log"

    def _prepare(self) -> None:
        config_file = self.repo / "config"
        if not config_file.exists():
            self.repo.mkdir(parents=True, exist_ok=True)
            done = subprocess.run(
                [self._binary, "init", "--empty-repo", "--profile=test"],
                env=self._environment(),
                capture_output=True,
                timeout=self._start_timeout_s,
            )
            if done.returncode:
                said = done.stderr.decode(errors="replace").strip()
                raise KuboNodeError(f"cannot make a repository in {self.repo}: {said}")
        # At every start: a repository made elsewhere, or edited, is made private too.
        config = json.loads(config_file.read_text())
        merge(config, private_config(self._ports, gateway_fetches=self._gateway_fetches))
        fresh = config_file.with_suffix(".new")
        # It holds the node's private key.
        with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as out:
            json.dump(config, out, indent=2)
        os.replace(fresh, config_file)

    def _environment(self) -> dict[str, str]:
        kept = {key: value for key, value in os.environ.items() if not key.startswith("IPFS_")}
        return {**kept, "IPFS_PATH": str(self.repo), "IPFS_TELEMETRY": "off", "DO_NOT_TRACK": "1"}

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + self._start_timeout_s
        while time.monotonic() < deadline:
            if self._alive.ended.wait(_POLL_S):
                raise KuboNodeError(f"the node in {self.repo} ended at its start: {self._tail()}")
            with contextlib.suppress(OSError, SourceError, ValueError):
                api = parse_api_address((self.repo / "api").read_text())
                self._gateway = parse_api_address((self.repo / "gateway").read_text())
                self._rpc = KuboRpc("{}:{}".format(*api), timeout_s=10.0)
                self._identity = self._rpc.ask("id")
                return
        raise KuboNodeError(
            f"the node in {self.repo} did not answer within {self._start_timeout_s:.0f} s: "
            f"{self._tail()}"
        )

    def _tail(self) -> str:
        with contextlib.suppress(OSError), self._log.open("rb") as log:
            log.seek(max(0, os.fstat(log.fileno()).st_size - _LOG_TAIL_BYTES))
            return log.read().decode(errors="replace").strip()
        return "(no log)"

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._alive.process.send_signal(number)

    def _end(self) -> None:
        self._alive.ended.wait()
        if self._rpc is not None:
            self._rpc.close()
        self._run = self._rpc = None


class _Run:
    """One life of the daemon, started by a thread of its own.

    The kernel ends the daemon with the thread that started it, and a caller's may be a short one.
    """

    def __init__(self, command: list[str], environment: dict[str, str], log: Path) -> None:
        self.ended = threading.Event()
        self._started = threading.Event()
        self._failure: OSError | None = None
        self.process: subprocess.Popen[bytes]
        threading.Thread(
            target=self._live, args=(command, environment, log), name="kubo", daemon=True
        ).start()
        self._started.wait()
        if self._failure is not None:
            raise KuboNodeError(f"cannot run {command[0]}: {self._failure}") from self._failure

    def _live(self, command: list[str], environment: dict[str, str], log: Path) -> None:
        try:
            with log.open("wb") as out:
                self.process = subprocess.Popen(
                    command,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,  # an interrupt at the terminal is ours to handle
                    preexec_fn=dying_with_parent(),
                )
        except OSError as error:
            self._failure = error
            self.ended.set()
            return
        finally:
            self._started.set()
        self.process.wait()
        self.ended.set()


def private_config(ports: Ports, *, gateway_fetches: bool) -> dict[str, Any]:
    """What is set in every node's configuration."""
    off = {"Enabled": False}
    return {
        "Addresses": {
            "API": f"/ip4/127.0.0.1/tcp/{ports.api}",
            "Gateway": f"/ip4/127.0.0.1/tcp/{ports.gateway}",
            "Swarm": [f"/ip4/127.0.0.1/tcp/{ports.swarm}"],
            "Announce": [],
            "AppendAnnounce": [],
        },
        "AutoConf": off,
        "AutoNAT": {"ServiceMode": "disabled"},
        "AutoTLS": off,
        "Bootstrap": [],
        "DNS": {"Resolvers": {}},
        "Discovery": {"MDNS": off},
        "Gateway": {
            "ExposeRoutingAPI": False,
            "NoDNSLink": True,
            "NoFetch": not gateway_fetches,
        },
        "HTTPRetrieval": off,
        "Ipns": {"DelegatedPublishers": []},
        "Peering": {"Peers": []},
        "Plugins": {"Plugins": {"telemetry": {"Config": {"Mode": "off"}}}},
        "Provide": off,
        "Routing": {"Type": "none", "DelegatedRouters": []},
        "Swarm": {
            "DisableNatPortMap": True,
            "EnableHolePunching": False,
            "RelayClient": off,
            "RelayService": off,
            "Transports": {
                "Network": dict.fromkeys(
                    ("QUIC", "Relay", "WebRTCDirect", "WebTransport", "Websocket"), False
                )
            },
        },
        "Version": {"SwarmCheckEnabled": False},
    }


def merge(config: dict[str, Any], changes: dict[str, Any]) -> None:
    """Put `changes` into `config`, table by table; an empty table empties."""
    for key, value in changes.items():
        there = config.get(key)
        if isinstance(value, dict) and value and isinstance(there, dict):
            merge(there, value)
        else:
            config[key] = value
