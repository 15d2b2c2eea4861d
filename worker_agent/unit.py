"""The agent's unit for systemd: what it may do is what it needs, and nothing else.

It needs user namespaces: bubblewrap makes one for every task, with mounts and a network of its own
in it. What would forbid those is left out, and only that.
"""

from dataclasses import dataclass
from pathlib import Path

from trainyard.chain.keystore import CREDENTIAL

_UNIT = """\
[Unit]
Description=Trainyard worker
Documentation=man:systemd.exec(5)
Wants=network-online.target
After=network-online.target

[Service]
Type=exec
User={user}
ExecStart={command}
Restart=on-failure
RestartSec=10
# First it ends what it trains; the journal survives being killed.
TimeoutStopSec=60
KillMode=mixed

# The password, readable by this service alone; the file itself is root's.
LoadCredential={credential}:{password_file}

# What it may write.
ProtectSystem=strict
ProtectHome={protect_home}
ReadWritePaths={writable}
StateDirectory=trainyard
StateDirectoryMode=0700
CacheDirectory=trainyard
CacheDirectoryMode=0700
# Else they would be below the account's home, which may not be written.
Environment=XDG_STATE_HOME=%S/trainyard XDG_CACHE_HOME=%C/trainyard
PrivateTmp=yes
PrivateMounts=yes
UMask=0077

# What it may be.
NoNewPrivileges=yes
CapabilityBoundingSet=
AmbientCapabilities=
RestrictSUIDSGID=yes
LockPersonality=yes
RestrictRealtime=yes
RemoveIPC=yes
KeyringMode=private

# What it may see and reach.
PrivateDevices=yes
DevicePolicy=closed
ProtectClock=yes
# Bubblewrap mounts a /proc in each sandbox, which the kernel allows only to who sees all of /proc:
# ProtectKernelTunables, ProtectKernelLogs, ProtectProc and ProcSubset would hide parts of it.
ProtectKernelModules=yes
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK

# What it may call. A sandbox is made of @mount and new user, mount, process, network, name, IPC and
# cgroup spaces, and of a host name, which ProtectHostname would forbid; so those stay allowed.
# MemoryDenyWriteExecute would stop TensorFlow's compiler.
SystemCallArchitectures=native
SystemCallFilter=@system-service @mount seccomp sethostname
SystemCallFilter=~@clock @cpu-emulation @module @obsolete @raw-io @reboot @swap
SystemCallErrorNumber=EPERM
RestrictNamespaces=user mnt pid net uts ipc cgroup

# What it may use. Tasks get cgroups of their own below this one; the agent itself moves into one.
Delegate=cpu memory pids
MemoryMax={memory_bytes}
TasksMax=4096
LimitNOFILE=65536
LimitCORE=0
OOMPolicy=continue

[Install]
WantedBy=multi-user.target
"""


@dataclass(frozen=True, slots=True)
class Unit:
    # Ends with the option that the home follows.
    command: tuple[str, ...]
    home: Path
    password_file: Path
    user: str
    memory_bytes: int
    also_writable: tuple[Path, ...] = ()


def unit_text(unit: Unit) -> str:
    paths = (unit.home, *unit.also_writable)
    # An empty /home could not be written to below.
    in_homes = any(path.is_relative_to(base) for path in paths for base in ("/home", "/root"))
    return _UNIT.format(
        user=unit.user,
        command=" ".join(_quoted(part) for part in (*unit.command, str(unit.home))),
        credential=CREDENTIAL,
        password_file=_quoted(str(unit.password_file)),
        protect_home="read-only" if in_homes else "yes",
        writable=" ".join(_quoted(str(path)) for path in paths),
        memory_bytes=unit.memory_bytes,
    )


def _quoted(word: str) -> str:
    """As systemd reads it: specifiers begin with %, variables with $."""
    plain = word.replace("%", "%%").replace("$", "$$")
    if all(letter.isalnum() or letter in "/._-%$+:@=" for letter in plain):
        return plain
    escaped = plain.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
