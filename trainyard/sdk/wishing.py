"""What a requester says in a few words: amounts of money, ways to verify, times. No I/O."""

import operator
import re
from datetime import timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

from trainyard.protocol.market import Policy
from trainyard.protocol.offering import Wish
from trainyard.sdk.errors import RefusedError

_UNITS = {"wei": 1, "gwei": 10**9, "eth": 10**18, "ether": 10**18}
_AMOUNT = re.compile(r"\s*([0-9][0-9_]*(?:\.[0-9]+)?)\s*([A-Za-z]+)\s*")
_WAYS = {"audit": Policy.AUDIT, "replicate": Policy.REPLICATE, "score": Policy.SCORE}
_MILLION = 1_000_000
# More than the terms of a task can say.
_LONGEST_S = 1 << 32


def wei_of(amount: int | str, what: str = "budget") -> int:
    """An amount as "0.25 ETH", or as wei if it is a number."""
    if isinstance(amount, bool) or not isinstance(amount, int | str):
        raise RefusedError(f'{what}: {amount!r} is no amount; say "0.25 ETH", or a number of wei')
    if isinstance(amount, int):
        wei = amount
    else:
        found = _AMOUNT.fullmatch(amount)
        unit = _UNITS.get(found[2].lower()) if found else None
        if found is None or unit is None:
            raise RefusedError(
                f'{what}: {amount!r} is no amount; say "0.25 ETH", "5 gwei", or a number of wei'
            )
        try:
            exact = Decimal(found[1].replace("_", "")) * unit
        except InvalidOperation:
            raise RefusedError(f"{what}: {amount!r} is no amount") from None
        wei = int(exact)
        if wei != exact:
            raise RefusedError(f"{what}: {amount!r} is not a whole number of wei")
    if wei < 0:
        raise RefusedError(f"{what}: {amount!r} is less than nothing")
    return wei


def seconds_of(time: float | timedelta, what: str = "deadline") -> int:
    """A length of time in seconds, at least one."""
    seconds = time.total_seconds() if isinstance(time, timedelta) else time
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not is_number or not 1 <= seconds < _LONGEST_S:
        raise RefusedError(f"{what}: {time!r} is no time; give seconds or a timedelta")
    return int(seconds)


def count_of(value: Any, what: str, least: int = 1) -> int:
    """How many of something; NumPy's whole numbers are as good as Python's."""
    try:
        count = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        count = None
    if count is None or count < least:
        raise RefusedError(f"{what}: {value!r} is no number of them; give {least} or more")
    return count


def verification_of(verify: str | None, mode: str) -> Wish:
    """A way to verify: "audit" or "audit:4", "replicate" or "replicate:3", "score:0.95".

    None is by audits; of a run that cannot be replayed somebody has to say what it has to reach.
    """
    if verify is None and mode == "async":
        raise RefusedError(
            "verify: mode 'async' cannot be replayed, and whoever trains is paid for any result "
            "that reaches the score which you ask for: say so, as 'score:0.9'; 'score:0' takes "
            "whatever comes"
        )
    verify = "audit" if verify is None else verify
    if not isinstance(verify, str):
        raise RefusedError(f'verify: {verify!r} is no way to verify; say "audit:2", for instance')
    name, _, number = verify.partition(":")
    policy = _WAYS.get(name.strip().lower())
    if policy is None:
        raise RefusedError(
            f'verify: {verify!r} is no way to verify; there are "audit:2" (so many segments are '
            'recomputed), "replicate:3" (so many train the same), "score:0.95" (a metric to reach)'
        )
    if (policy is Policy.SCORE) != (mode == "async"):
        raise RefusedError(
            "verify: mode 'async' cannot be replayed, so it is verified by 'score:TARGET', and no "
            "other mode is"
        )
    if policy is Policy.REPLICATE and mode not in ("single", "predict"):
        raise RefusedError("verify: whoever replicates trains alone; use mode 'single'")
    try:
        if policy is Policy.SCORE:
            target = float(number)
            if not 0 <= target <= 1:
                raise ValueError
            return Wish(policy=policy, target=round(target * _MILLION))
        count = int(number) if number else None
    except ValueError:
        raise RefusedError(f"verify: {number!r} of {verify!r} is not the number it needs") from None
    if policy is Policy.AUDIT:
        if count is not None and not 0 <= count <= 15:
            raise RefusedError(f"verify: {count} audits, where there are 0 to 15")
        return Wish(policy=policy, audits=count)
    if count is not None and not 2 <= count <= 32:
        raise RefusedError(f"verify: {count} copies, where there are 2 to 32")
    return Wish(policy=policy, slots=count)
