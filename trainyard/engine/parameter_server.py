"""The processes of an async run as one TensorFlow cluster with a parameter server.

Workers are bare servers of TensorFlow: they are sent what they compute, and keep nothing. The
server that keeps the weights is in the process that leads the run, which is lost with either.
"""

from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from types import TracebackType
from typing import Any

import tensorflow as tf

from trainyard.engine.addresses import Addresses
from trainyard.engine.events import Joined, tell

# One that a worker computes and one that it finds when it is done.
_STEPS_A_WORKER = 2


def serve(addresses: Addresses, job: str, slot: int, threads: int) -> Any:
    """Start a server of the cluster in this process; it runs what it is sent from then on."""
    return tf.distribute.Server(
        tf.train.ClusterSpec(addresses.jobs),
        job_name=job,
        task_index=slot,
        protocol="grpc",
        config=tf.compat.v1.ConfigProto(
            intra_op_parallelism_threads=threads, inter_op_parallelism_threads=threads
        ),
    )


def work_for(addresses: Addresses, slot: int, threads: int) -> None:
    """Compute what the leader sends to the worker of `slot`, until this process is ended."""
    server = serve(addresses, "worker", slot, threads)
    tell(Joined(slot=slot))
    server.join()


class Farm:
    """The workers, for who leads them.

    To be made before TensorFlow computes anything. Waits for the workers. One that is lost is
    waited for by TensorFlow, while the others compute what it had begun.
    """

    def __init__(self, addresses: Addresses, threads: int) -> None:
        self._server = serve(addresses, "ps", 0, threads)
        resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
            tf.train.ClusterSpec(addresses.jobs), task_type="chief", task_id=0, rpc_layer="grpc"
        )
        self._strategy = tf.distribute.ParameterServerStrategy(resolver)
        self._coordinator = tf.distribute.coordinator.ClusterCoordinator(self._strategy)
        self._most = _STEPS_A_WORKER * len(addresses.workers)

    def keep(self, values: Sequence[Any]) -> list[Any]:
        """Variables of these values, where all workers reach them."""
        with self._strategy.scope():
            return [tf.Variable(value, trainable=False) for value in values]

    def flock(self) -> "Flock":
        return Flock(self._coordinator, self._most)


class Flock:
    """Calls that workers compute, whichever is free, and what they came to, whichever is first.

    A call has come to something once that is here. So one whose worker is lost before is computed
    by another, and none comes twice.
    """

    def __init__(self, coordinator: Any, most: int) -> None:
        self._coordinator = coordinator
        self._most = most
        self._waiting: set[Future[Any]] = set()
        self._pool = ThreadPoolExecutor(most, thread_name_prefix="trainyard-flock")

    def __enter__(self) -> "Flock":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave nothing under way: it would be computed beside what comes next."""
        self._pool.shutdown(wait=True)

    @property
    def is_full(self) -> bool:
        return len(self._waiting) >= self._most

    @property
    def is_empty(self) -> bool:
        return not self._waiting

    def send(self, function: Any, arguments: Sequence[Any]) -> None:
        remote = self._coordinator.schedule(function, args=tuple(arguments))
        self._waiting.add(self._pool.submit(remote.get))

    def receive(self) -> Any:
        """What came first of all that is under way."""
        done, _ = wait(self._waiting, return_when=FIRST_COMPLETED)
        first = done.pop()
        self._waiting.remove(first)
        return first.result()
