"""The workers of a synchronous run as one TensorFlow cluster, which hands their vectors round."""

import itertools
import json
import os
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from trainyard.engine.stepping import Exchange

# What the workers call themselves; the strategy counts its own groups from 1.
_GROUP = 1 << 20


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
    # Starts this worker's server, and waits for those of the others.
    tf.distribute.MultiWorkerMirroredStrategy()

    # Gathered, not reduced: the order of a ring's sums depends on who talks to whom. And by the
    # operation itself: the strategy's `all_gather` first gathers the shapes, in a message of its
    # own, which takes as long as the vectors do.
    keys = itertools.count(1)

    def gather(vector: Any) -> Any:
        return tf.raw_ops.CollectiveGatherV2(
            input=vector[tf.newaxis],
            group_size=len(addresses),
            group_key=_GROUP,
            # Called once for each length of vectors, of which each needs a key of its own.
            instance_key=next(keys),
            ordering_token=[],
            communication_hint="ring",
        )

    exchange: Exchange = tf.function(gather, autograph=False)
    return exchange
