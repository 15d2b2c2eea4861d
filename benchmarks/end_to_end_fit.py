"""Keras' own `fit`, as anybody has it who needs nobody else.

python -m benchmarks.end_to_end_fit JOB
"""

import os
import time

from benchmarks.end_to_end_jobs import Moments, Outcome, given_job, save_weights, weights_file


def main() -> None:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    job = given_job()
    import keras
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(job.threads)
    keras.utils.set_random_seed(job.seed)
    model = keras.saving.load_model(job.model)
    images, labels = job.arrays()
    began, moments = time.perf_counter(), Moments(job, time.time())
    keeping = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda epoch, logs: moments.keep(model.get_weights())
    )
    model.fit(
        images, labels, batch_size=job.batch, epochs=job.epochs, callbacks=[keeping], verbose=0
    )
    outcome = Outcome(seconds=time.perf_counter() - began)
    save_weights(weights_file(job), model.get_weights())
    outcome.save(job)


if __name__ == "__main__":
    main()
