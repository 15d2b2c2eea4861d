"""What taking part in a task costs in units of gas, as measured. No I/O."""

from trainyard.protocol.market import Policy, Terms

# In units of gas, of one worker's calls; what was measured is in benchmarks/gas-snapshot.json.
OWN_GAS = {
    Policy.AUDIT: {"join": 73_000, "submit": 103_000},
    Policy.REPLICATE: {"join": 73_000, "commit": 66_000, "reveal": 40_000},
    Policy.SCORE: {"join": 71_000, "submit": 103_000},
    Policy.CONTEST: {"join": 71_000, "commit": 66_000, "reveal": 40_000},
}
# Of calls that one of the workers makes for all.
SHARED_GAS = {
    Policy.AUDIT: {"draw": 151_000, "open": 119_000, "settle": 127_000},
    Policy.REPLICATE: {"settle": 64_000},
    Policy.SCORE: {"draw": 190_000, "settle": 179_000},
    Policy.CONTEST: {"draw": 190_000, "settle": 179_000},
}
# Of an auditor's.
AUDIT_GAS = {"auditCommit": 138_000, "auditReveal": 104_000}


def gas_of(terms: Terms) -> int:
    """Of the calls that a worker has to pay for, if all goes well."""
    shared = sum(SHARED_GAS[terms.policy].values())
    return sum(OWN_GAS[terms.policy].values()) + -(-shared // terms.slots)
