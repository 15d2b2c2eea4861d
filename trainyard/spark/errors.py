"""What can go wrong between Spark and the market.

All of these take one text: those of executors arrive at the driver as nothing else.
"""

from trainyard.protocol.errors import PermanentError, TransientError


class NoSparkError(PermanentError):
    """Spark, or the Java that it runs on, is not here; the text says what to install."""


class RecordError(PermanentError, ValueError):
    """A record that is not as it was said to be; names the partition and the record."""


class PartitionError(PermanentError):
    """A partition that cannot become shards, whoever tries it."""


class ExecutorError(TransientError):
    """An executor could not write to content, such as when it does not reach the store."""
