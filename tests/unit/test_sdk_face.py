"""The public face: what `import trainyard` costs, and what it offers."""

import inspect
import re
import subprocess
import sys

import pytest

import trainyard

_LOADED = """
import sys, trainyard
heavy = ("tensorflow", "keras", "web3", "numpy", "pydantic", "rich", "eth_account")
print([name for name in heavy if name in sys.modules])
"""


def test_import_loads_nothing_heavy() -> None:
    done = subprocess.run([sys.executable, "-c", _LOADED], capture_output=True, text=True)

    assert done.stdout.strip() == "[]", done.stderr


def _import_s() -> float:
    """What an interpreter says of the import, with all that it loads, and without its own start."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", "import trainyard"],
        capture_output=True,
        text=True,
        check=True,
    )
    [told] = re.findall(r"\| +(\d+) \| trainyard$", done.stderr, re.MULTILINE)
    return int(told) / 1e6


def test_import_takes_less_than_three_tenths_of_a_second() -> None:
    # The best of some, since others may keep the machine busy.
    assert min(_import_s() for _ in range(5)) < 0.3


def test_all_public_names_are_there() -> None:
    import tests.quiet_web3  # noqa: F401

    for name in trainyard.__all__:
        assert getattr(trainyard, name) is not None
        assert name in dir(trainyard)


def test_connecting_takes_what_the_sdk_takes() -> None:
    import tests.quiet_web3  # noqa: F401
    from trainyard.sdk import connecting

    taken = dict(inspect.signature(connecting.connect).parameters)
    # Which sandbox there is is decided by the face.
    del taken["confinement"]

    assert dict(inspect.signature(trainyard.connect).parameters) == taken


def test_what_is_not_there_says_so() -> None:
    with pytest.raises(AttributeError, match="no attribute 'fut'"):
        trainyard.fut  # noqa: B018
