"""An agent's `config.toml` as first written: every setting, what it means, and its default."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from worker_agent.settings import Settings

_HEAD = """\
# The settings of a Trainyard worker's agent. What begins with '#' is not set; amounts are in wei,
# or the smallest unit of the market's token. 'trainyard worker doctor' checks all of it.
"""

# Of every setting, what it is for; and what it may look like, where nothing is the default.
MEANINGS: dict[str, tuple[str, Any]] = {
    "payout": (
        "Where earnings go, whenever nothing is under way; they stay in the market if not given.",
        "0x" + "0" * 40,
    ),
    "payout_float": (
        "What stays in the market when earnings are paid out, for the next stakes. If not given: "
        "the largest stake that this account ever put down, for each of policy.concurrency tasks, "
        "and what a challenge costs if there is a bond.",
        10**18,
    ),
    "metrics_port": ("Prometheus asks here, on loopback only.", 9464),
    "chain": ("The chain, and the market on it.", None),
    "chain.endpoints": ("JSON-RPC endpoints, the preferred one first. Two are better.", None),
    "chain.chain_id": ("Endpoints of any other chain are refused.", None),
    "chain.market": ("The market's address.", None),
    "chain.start_block": ("The block in which the market was deployed.", None),
    "chain.wake_by": (
        "A WebSocket address to be told of new blocks by, so as to look sooner.",
        "ws://127.0.0.1:8546",
    ),
    "chain.confirmations": (
        "How deep a transaction has to lie before it is forgotten about, in blocks.",
        None,
    ),
    "chain.join_confirmations": (
        "How deep a post has to lie before its task is joined, in blocks: after a reorg its number "
        "may be that of another one. If not given: 2, or chain.confirmations if that is less.",
        2,
    ),
    "chain.poll_s": ("Seconds between two looks at the chain.", None),
    "chain.margin_s": (
        "What would not be done so many seconds before its deadline is not begun, or given up; "
        "what is done is sent up to the last second.",
        None,
    ),
    "chain.max_fee_gwei": (
        "The most that a unit of gas may cost, however busy the chain is: what would need more "
        "waits, also if it is late then.",
        None,
    ),
    "chain.max_tip_gwei": (
        "How far an endpoint is believed that names a tip. A transaction that waits is raised "
        "beyond that, by an eighth each time, up to max_fee_gwei.",
        None,
    ),
    "content": ("Where models, data and results are kept and sought.", None),
    "content.store": (
        "A folder of the embedded store; below the agent's own folder if not given.",
        "/var/lib/trainyard/content",
    ),
    "content.kubo": ("A Kubo node's RPC address, to keep content there.", "http://127.0.0.1:5001"),
    "content.gateways": ("Trustless gateways to fetch from.", None),
    "content.is_ours": (
        "Whether the store or node above is this agent's alone: then results are unpinned there "
        "after policy.keep_hours; in the agent's own folder they always are.",
        None,
    ),
    "content.listen": (
        "Serve the whole store here as a gateway, to auditors and to who pays. Without this, an "
        "advertised gateway or a Kubo node nobody could fetch what was trained: no task is joined.",
        "0.0.0.0:8490",
    ),
    "content.advertise": (
        "Where others reach that gateway, if it is not where it listens.",
        "http://worker.example.org:8490",
    ),
    "content.boards": (
        "Gateways that take small blocks: the worker's profile is put up there, which says where "
        "its gateway is, and others' profiles are found.",
        None,
    ),
    "content.allow_private": (
        "Whether other workers' gateways are asked at addresses of this machine or of a private "
        "network, where the whole market is in one.",
        None,
    ),
    "policy": ("Which tasks are taken, at which price, and which duties.", None),
    "policy.min_wei_per_hour": (
        "What an hour of this whole machine must earn, as estimated from its measured speed.",
        None,
    ),
    "policy.energy_wei_per_kwh": (
        "What a kilowatt-hour costs: a task has to pay for its energy, as estimated, and its gas.",
        None,
    ),
    "policy.at_a_loss": (
        "Whether tasks are taken that do not, such as one's own.",
        None,
    ),
    "policy.max_hours": ("The longest task, as estimated.", None),
    "policy.max_stake": ("The largest stake that one task may hold.", 10**18),
    "policy.allow_requesters": ("Whose tasks are taken: everybody's if nobody is named.", None),
    "policy.deny_requesters": ("Whose tasks are never taken.", None),
    "policy.modes": ("The ways of training to take part in, and predicting.", None),
    "policy.concurrency": ("Tasks at once.", None),
    "policy.turns": (
        "Of the agents of this machine that say so here, how many take and train tasks at once; "
        "the others wait before they join.",
        2,
    ),
    "policy.max_memory_bytes": (
        "The largest task by its memory; at first three quarters of what is here.",
        None,
    ),
    "policy.max_disk_bytes": ("The largest task by its disk.", None),
    "policy.bond": (
        "Put down so as to be drawn as auditor, evaluator and referee; 0 for none of that.",
        None,
    ),
    "policy.min_audit_fee": ("The lowest fee for which an audit is done.", None),
    "policy.min_audit_for_s": (
        "The shortest time in which to answer as auditor or referee; less than this machine needs "
        "would cost the bond.",
        None,
    ),
    "policy.min_answer_for_s": ("The shortest time in which to reveal what was answered.", None),
    "policy.self_audits": (
        "Of the segments computed together with others, how many are computed again before the "
        "result is signed.",
        None,
    ),
    "policy.keep_hours": (
        "For so long after a task is over its result can be fetched here, and its files stay.",
        None,
    ),
    "peers": ("Where other workers of a task reach this one.", None),
    "peers.host": ("The address to listen at.", None),
    "peers.port": (
        "The first port of as many as there are tasks at once; 0 for whichever is free.",
        None,
    ),
    "peers.advertise": (
        "What is written on the peer card, if it is not where the agent listens: for the first "
        "port, and for the others as much further on.",
        "worker.example.org:7700",
    ),
    "peers.relay": (
        "A relay's host and port, for a machine that nobody can reach; it carries only what "
        "workers say to each other, so content.listen or a Kubo node is needed all the same.",
        "relay.example.org:7700",
    ),
    "sandbox": ("What a task's processes may use at most.", None),
    "sandbox.memory_bytes": ("Their memory.", None),
    "sandbox.disk_bytes": ("Their disk.", None),
    "sandbox.processes": ("Their number.", None),
    "sandbox.cores": (
        "Cores that they use together, such as 1.5; kept where the agent may make control groups "
        "with the controller cpu.",
        None,
    ),
    "dapp": ("Who is told how training goes, for requesters that watch.", None),
    "dapp.url": ("The address of a dapp; nobody is told if not given.", "https://dapp.example.org"),
}


def config_text(settings: Settings) -> str:
    """The whole file, which reads back as the same settings."""
    return "\n".join((_HEAD, *_section(settings, "")))


def _section(settings: BaseModel, prefix: str) -> Iterator[str]:
    names = list(type(settings).model_fields)
    tables = [name for name in names if isinstance(getattr(settings, name), BaseModel)]
    # Above all tables: after one, a line would belong to it.
    for name in (name for name in names if name not in tables):
        meaning, example = MEANINGS[prefix + name]
        value = getattr(settings, name)
        given = f"# {name} = {_toml(example)}" if value is None else f"{name} = {_toml(value)}"
        yield f"# {meaning}\n{given}\n"
    for name in tables:
        yield f"# {MEANINGS[prefix + name][0]}\n[{prefix}{name}]\n"
        yield from _section(getattr(settings, name), f"{prefix}{name}.")


def _toml(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, str | Path):
        # Its escapes are TOML's too.
        return json.dumps(str(value), ensure_ascii=False)
    return json.dumps(value)
