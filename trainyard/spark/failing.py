"""Errors of executors as the driver raises them."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from trainyard.protocol.errors import TrainyardError
from trainyard.spark import errors

# The last line of a traceback: the name of the class, and its text.
_LAST = re.compile(rf"^\s*{re.escape(errors.__name__)}\.(\w+): (.+?)\s*$", re.MULTILINE)


def raised_in(text: str) -> TrainyardError | None:
    """The error of ours that a failed job was about, by the text that Spark has for it."""
    found = _LAST.findall(text)
    if not found:
        return None
    # What stands before it is what it came from.
    name, said = found[-1]
    kind = getattr(errors, name, None)
    if not isinstance(kind, type) or not issubclass(kind, TrainyardError):
        return None
    return kind(said)


@contextmanager
def explained() -> Iterator[None]:
    """What an executor raised of our own is raised here; all else is Spark's, and stays."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        yield
    except (Py4JJavaError, PySparkException) as error:
        found = raised_in(str(error))
        if found is None:
            raise
        raise found from error
