"""A client of Flower: trains some steps on its half of the records, and sends its weights back.

The model is kept from round to round, so that TensorFlow traces its step once, where Flower's own
examples build it anew. Its optimiser is set back each time: FedAvg knows of weights alone.
"""

import os
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from benchmarks.end_to_end_jobs import Job

# Names the job, for the processes that Ray starts.
JOB = "TRAINYARD_BENCH_JOB"


def train(message: Message, context: Context) -> Message:
    job = _job()
    model, images, labels = _material()
    model.set_weights(message.content["arrays"].to_numpy_ndarrays())
    for variable in model.optimizer.variables:
        variable.assign(np.zeros(variable.shape, variable.dtype))
    model.optimizer.learning_rate.assign(job.rate)
    number = int(message.content["config"]["server-round"]) - 1
    chosen = _chosen(job, number, int(context.node_config["partition-id"]))
    share = job.batch // job.workers
    model.fit(images[chosen], labels[chosen], batch_size=share, shuffle=False, verbose=0)
    arrays = ArrayRecord(model.get_weights())
    sent = _size(message.content["arrays"]) + _size(arrays)
    metrics = MetricRecord({"num-examples": len(chosen), "sent-bytes": sent})
    return Message(RecordDict({"arrays": arrays, "metrics": metrics}), reply_to=message)


def _chosen(job: Job, number: int, client: int) -> Any:
    """The client's share of the global batches of a round."""
    share = job.batch // job.workers
    order = np.concatenate([job.order(epoch) for epoch in range(job.epochs)])
    first = number * job.local_steps
    batches = order.reshape(-1, job.batch)[first : first + job.local_steps]
    return batches[:, client * share : (client + 1) * share].reshape(-1)


def _size(arrays: ArrayRecord) -> int:
    """Bytes of the parameters as they are serialised."""
    return sum(len(one.data) for one in arrays.values())


@lru_cache
def _job() -> Job:
    return Job.load(Path(os.environ[JOB]))


@lru_cache
def _material() -> tuple[Any, Any, Any]:
    """Once a process: the model and all records."""
    import keras
    import tensorflow as tf

    job = _job()
    tf.config.threading.set_intra_op_parallelism_threads(job.threads)
    keras.utils.set_random_seed(job.seed)
    model = keras.saving.load_model(job.model)
    model.optimizer.build(model.trainable_variables)
    return model, *job.arrays()


app = ClientApp()
app.train()(train)
