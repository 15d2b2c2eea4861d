"""The workers of a synchronous run as one TensorFlow cluster, which hands their vectors round."""

import json
import os
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from trainyard.engine.stepping import Exchange


def join(addresses: Sequence[str], slot: int) -> Exchange:
    """Enter the cluster of `addresses`, in the order of slots, as the one at `slot`.

    To be called before TensorFlow computes anything. Waits for the others. When one is lost, an
    exchange raises TensorFlow's UnavailableError: all have to start anew, in a new cluster.
    """
    os.environ["TF_CONFIG"] = json.dumps(
        {
            "cluster": {"worker": list(addresses)},
            "task": {"type": "worker", "index": slot},
        }
    )
    communication = tf.distribute.experimental.CommunicationOptions(
        implementation=tf.distribute.experimental.CommunicationImplementation.RING
    )
    strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=communication)

    def gather(vector: Any) -> Any:
        return tf.distribute.get_replica_context().all_gather(vector[tf.newaxis], axis=0)

    # Gathered, not reduced: the order of a ring's sums depends on who talks to whom.
    exchange: Exchange = tf.function(
        lambda vector: strategy.run(gather, args=(vector,)), autograph=False
    )
    return exchange
