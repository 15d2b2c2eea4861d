"""The public face: what `import trainyard` costs, and what it offers."""

import inspect
import subprocess
import sys

import pytest

import trainyard

_LOADED = """
import sys
before = set(sys.modules)
import trainyard
after = {name.partition(".")[0] for name in set(sys.modules) - before}
print(sorted(after - sys.stdlib_module_names))
"""


def test_import_loads_nothing_but_the_standard_library() -> None:
    """So that it takes no time: all else comes when it is used."""
    done = subprocess.run([sys.executable, "-c", _LOADED], capture_output=True, text=True)

    assert done.stdout.strip() == "['trainyard']", done.stderr


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
