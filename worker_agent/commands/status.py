"""`trainyard worker status` and `tasks`: what the agent does, running or not."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from trainyard.cli.failing import telling_failures
from trainyard.cli.output import Output
from worker_agent.commands.options import HomeOption, Json, home_at

if TYPE_CHECKING:
    from worker_agent.settings import Home


def status(home: HomeOption = None, as_json: Json = False) -> None:
    """Say how the agent is, what it has and what it does.

    Without a running agent it says so, and tells what its files and the chain know. Exit code 0
    either way; ask --json for `running`.
    """
    with telling_failures(as_json):
        place, output = home_at(home), Output(as_json)
        document, why = _asked(place, "status")
        if document is None:
            output.note(f"{why}; reading the chain")
            from worker_agent.looking import look
            from worker_agent.settings import read_settings

            document = look(place, read_settings(place)).status()
        document = {"running": document["pid"] is not None, "home": str(place.folder)} | document
        output.result(document, _lines(document, why))


def tasks(
    home: HomeOption = None,
    live: Annotated[bool, typer.Option("--live", help="Leave out those that are over.")] = False,
    as_json: Json = False,
) -> None:
    """List the tasks that we are or were in, the newest first."""
    with telling_failures(as_json):
        from trainyard.protocol.moves import ENDED
        from worker_agent.commands.wording import task_lines

        place, output = home_at(home), Output(as_json)
        document, why = _asked(place, "tasks")
        if document is None:
            output.note(f"{why}; reading the chain")
            from worker_agent.looking import look
            from worker_agent.settings import read_settings

            document = {"tasks": look(place, read_settings(place)).tasks(ended=True)}
        over = {state.name.lower() for state in ENDED}
        found = [one for one in document["tasks"] if not (live and one["state"] in over)]
        lines = [line for one in found for line in task_lines(one)]
        output.result({"tasks": found}, lines or ["no task yet"])


def _asked(home: "Home", what: str) -> tuple[dict[str, Any] | None, str]:
    """What the running agent answers; if none does, why."""
    from worker_agent.asking import NoAgentError, ask

    try:
        return ask(home, what), ""
    except NoAgentError as error:
        return None, str(error)


def _lines(document: dict[str, Any], why: str) -> list[str]:
    from worker_agent.commands.wording import span, task_lines

    chain = document["chain"]
    mode = document["mode"] if not why else f"{document['mode']}: {why}"
    lines = [f"agent      {mode}"]
    if document["running"]:
        lines.append(f"process    pid {document['pid']}, up for {span(document['uptime_s'])}")
    lines += [f"  ends after {what}" for what in document["waits_for"]]
    lines += [f"address    {document['address']}", f"home       {document['home']}"]
    lines.append(f"market     {chain['market']} on chain {chain['chain_id']}")
    if chain["head"] is None:
        lines.append("head       not seen yet")
    else:
        lag = f", {chain['lag_blocks']} blocks behind it" if chain["lag_blocks"] else ""
        lines.append(f"head       block {chain['head']}, {span(chain['head_age_s'])} old{lag}")
    lines += [f"endpoint   {name}: {ill or 'well'}" for name, ill in chain["endpoints"].items()]
    if chain["failures"]:
        lines.append(f"TROUBLE    {chain['failures']} looks failed in a row: {chain['why']}")
    if document["account"] is not None:
        lines += _account(document["account"])
    if document["transactions"] is not None:
        counts = [f"{count} {state}" for state, count in document["transactions"].items() if count]
        lines.append(f"sent       {', '.join(counts) or 'nothing yet'}")
    lines += [line for one in document["tasks"] for line in task_lines(one)]
    return lines + ([] if document["tasks"] else ["no task now"])


def _account(account: dict[str, Any]) -> list[str]:
    from trainyard.protocol.telling import amount

    pool = "in the pool of auditors" if account["is_in_pool"] else "in no pool"
    held = amount(account["bond_locked"])
    return [
        f"balance    {amount(account['balance_wei'])}",
        f"credit     {amount(account['credit'])} in the market",
        f"bond       {amount(account['bond'])}, {held} of it held; {pool}",
        f"stakes     {amount(account['staked'])} held by tasks",
        f"record     {account['settled']} settled, {account['failed']} failed; audits "
        f"{account['audits_right']} right, {account['audits_wrong']} wrong",
    ]
