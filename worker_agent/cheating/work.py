"""One piece of work as a cheat does it: `python -m worker_agent.cheating.work JOB`."""

import json
import sys
from hashlib import sha256
from pathlib import Path

from trainyard.content.cid import Cid, Codec
from trainyard.engine.journal import Journal
from trainyard.engine.unsealing import Evidence
from trainyard.protocol.errors import PermanentError, TrainyardError
from trainyard.protocol.manifest import Manifest
from worker_agent import work
from worker_agent.cheating.plan import Cheat, Plan
from worker_agent.jobs import AnswerJob, SealJob, read_job
from worker_agent.opening import ask_holders, open_agent_content
from worker_agent.progress import ANSWERS, EVIDENCE, TRACE, Shelf, answer_name
from worker_agent.settings import Home, read_settings


def main() -> None:
    job = read_job(Path(sys.argv[1]))
    plan = Plan.read(job.home)
    try:
        match job, plan.cheat:
            case AnswerJob(), Cheat.GUESS:
                _answer(job, _start_of(job))
            case AnswerJob(), Cheat.COLLUDE:
                _answer(job, _claimed(job, plan))
            case SealJob(), Cheat.GARBAGE:
                # What it publishes is no state, and could not be read as one.
                Journal.state = lambda journal, number: None  # type: ignore[assignment,method-assign,return-value]
                work.main()
            case _:
                work.main()
    except TrainyardError as error:
        print(json.dumps({"reason": str(error)}), flush=True)
        sys.exit(1)


def _answer(job: AnswerJob, value: str) -> None:
    shelf = Shelf(Home(job.home).task(job.task))
    document = {"value": value, "scores": [], "reason": "", "about": job.about}
    shelf.write(document, ANSWERS, answer_name(job.panel, job.seat))


def _start_of(job: AnswerJob) -> str:
    """The hash of the state before the segment, which is all that an auditor is shown."""
    home = Home(job.home)
    folder = Shelf(home.task(job.task)).path(EVIDENCE)
    settings = read_settings(home)
    content = open_agent_content(home, settings)
    try:
        ask_holders(job, settings, content)
        data = content.fetcher.get(Cid(Codec.RAW, bytes.fromhex(job.manifest))).block
        result, root = bytes.fromhex(job.result), bytes.fromhex(job.root)
        evidence = Evidence.open(content, Manifest.parse(data), result, root, folder)
        return sha256(evidence.inputs(job.segment).states[0].read_bytes()).hexdigest()
    finally:
        content.close()


def _claimed(job: AnswerJob, plan: Plan) -> str:
    """What the partner has told us that it claims."""
    if plan.partner is None:
        raise PermanentError("who colludes needs a partner: name its home with --partner")
    states = Shelf(Home(plan.partner).task(job.task)).read(TRACE)["states"]
    return str(states[job.segment + 1])


if __name__ == "__main__":
    main()
