"""TensorFlow's MultiWorkerMirroredStrategy with workers that somebody launches by hand.

    python -m benchmarks.end_to_end_mirrored JOB           launches them, and waits
    python -m benchmarks.end_to_end_mirrored JOB WORKER BEGAN    is one of them

The loop is a custom one: Keras 3's `fit` cannot do with this strategy. TensorFlow's servers listen
everywhere, so this is to be run in a network of its own; what its loopback carries is what they
send each other.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.end_to_end_jobs import (
    Job,
    Moments,
    Outcome,
    given_job,
    save_weights,
    weights_file,
)
from trainyard.content.lifeline import dying_with_parent

_FIRST_PORT = 20_000
_DEVICES = Path("/proc/self/net/dev")


def main() -> None:
    job = given_job()
    if len(sys.argv) > 2:
        work(job, int(sys.argv[2]), float(sys.argv[3]))
    else:
        launch(job)


def launch(job: Job) -> None:
    before = _loopback_bytes()
    began, clock = time.perf_counter(), time.time()
    workers = [_start(number, job, clock) for number in range(job.workers)]
    codes = [worker.wait() for worker in workers]
    if any(codes):
        raise SystemExit(f"workers ended with {codes}")
    # In hand with the end of the processes: whoever wants them before has to ask a worker.
    Outcome(seconds=time.perf_counter() - began, sent_bytes=_loopback_bytes() - before).save(job)


def _start(number: int, job: Job, clock: float) -> "subprocess.Popen[bytes]":
    addresses = [f"127.0.0.1:{_FIRST_PORT + one}" for one in range(job.workers)]
    config = {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": number}}
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "benchmarks.end_to_end_mirrored"),
            *(sys.argv[1], str(number), str(clock)),
        ],
        env={**os.environ, "TF_CONFIG": json.dumps(config)},
        stdin=subprocess.DEVNULL,
        preexec_fn=dying_with_parent(),
    )


def _loopback_bytes() -> int:
    """Sent over the loopback of this network since it exists."""
    for line in _DEVICES.read_text().splitlines():
        name, _, counters = line.partition(":")
        if name.strip() == "lo":
            return int(counters.split()[8])
    raise SystemExit(f"{_DEVICES} says nothing of the loopback")


def work(job: Job, number: int, clock: float) -> None:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    import keras
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(job.threads)
    keras.utils.set_random_seed(job.seed + number)
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        model = keras.saving.load_model(job.model, compile=False)
        optimizer = keras.optimizers.Adam(job.rate)
        optimizer.build(model.trainable_variables)
    images, labels = (tf.constant(one) for one in job.arrays())
    losses = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="sum")

    def take(chosen: Any) -> Any:
        with tf.GradientTape() as tape:
            outputs = model(tf.gather(images, chosen), training=True)
            # A part of the mean over the batch of all, since the strategy adds the parts up.
            loss = losses(tf.gather(labels, chosen), outputs) / job.batch
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    def take_together(chosen: Any) -> Any:
        return strategy.reduce("SUM", strategy.run(take, (chosen,)), axis=None)

    step = tf.function(take_together)
    share = job.batch // job.workers
    moments = Moments(job, clock) if number == 0 else None
    for epoch in range(job.epochs):
        order = job.order(epoch)
        for first in range(number * share, job.records, job.batch):
            step(tf.constant(order[first : first + share]))
        if moments is not None:
            moments.keep(model.get_weights())
    if number == 0:
        save_weights(weights_file(job), model.get_weights())


if __name__ == "__main__":
    main()
