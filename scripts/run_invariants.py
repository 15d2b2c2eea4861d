"""Runs forge's invariants for a wanted number of calls and prints how many were made."""

import json
import math
import os
import re
import secrets
import subprocess
import sys
import time
from argparse import ArgumentParser

FORGE = "node_modules/.bin/forge"
ONLY_INVARIANTS = ["--match-test", "^invariant"]
# Long enough for a task to pass through every state within one run.
DEPTH = 500
CALLS_MADE = re.compile(r"\(runs: \d+, calls: (\d+), ")


def count_invariants() -> int:
    answer = subprocess.run(
        [FORGE, "test", "--list", "--json", *ONLY_INVARIANTS],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    listing = json.loads(answer.stdout.strip().splitlines()[-1])
    return sum(len(tests) for suite in listing.values() for tests in suite.values())


def runs_for(calls: int, invariants: int) -> int:
    """Runs per invariant, each of which has a campaign of its own."""
    return math.ceil(calls / (invariants * DEPTH))


def run_forge(runs: int, seed: str) -> int:
    """Run the campaigns, passing on what forge prints; the number of calls they made."""
    environment = {
        **os.environ,
        "FOUNDRY_INVARIANT_RUNS": str(runs),
        "FOUNDRY_INVARIANT_DEPTH": str(DEPTH),
        "FOUNDRY_FUZZ_SEED": seed,
    }
    made = 0
    command = [FORGE, "test", *ONLY_INVARIANTS]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as forge:
        assert forge.stdout is not None
        for line in forge.stdout:
            print(line, end="", flush=True)
            made += sum(int(calls) for calls in CALLS_MADE.findall(line))
    if forge.returncode != 0:
        sys.exit(f"an invariant broke; run the same again with --seed {seed}")
    return made


def main() -> None:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, required=True, help="calls over all invariants")
    parser.add_argument("--seed", default=f"0x{secrets.token_hex(32)}")
    options = parser.parse_args()

    invariants = count_invariants()
    if invariants == 0:
        sys.exit("there are no invariants in tests/forge")
    runs = runs_for(options.calls, invariants)
    print(f"{invariants} invariants, each {runs} runs of {DEPTH} calls, seed {options.seed}")
    started = time.monotonic()
    made = run_forge(runs, options.seed)
    print(f"invariant calls: {made} in {time.monotonic() - started:.0f} s, none broke")
    if made < options.calls:
        sys.exit(f"only {made} of {options.calls} calls were made")


if __name__ == "__main__":
    main()
