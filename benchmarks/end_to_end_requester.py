"""`trainyard.fit`, on a devnet that runs.

python -m benchmarks.end_to_end_requester JOB
"""

import os
import time

from benchmarks.end_to_end_jobs import Job, Outcome, given_job, save_weights, weights_file

RECEIPT = "receipt.json"


def main() -> None:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    job = given_job()
    import keras

    import trainyard

    model = keras.saving.load_model(job.model)
    images, labels = job.arrays()
    with trainyard.connect("devnet", folder=job.devnet) as market:
        began = time.perf_counter()
        history = trainyard.fit(
            model,
            images,
            labels,
            market=market,
            epochs=job.epochs,
            batch_size=job.batch,
            workers=job.workers,
            mode=job.mode,
            verify=job.verify,
            threads=job.threads,
            seed=job.seed,
            steps_per_segment=_length(job),
            deadline=3600,
            verbose=0,
        )
        seconds = time.perf_counter() - began
    save_weights(weights_file(job), model.get_weights())
    history.receipt.save(job.folder / RECEIPT)
    Outcome(seconds=seconds, task=history.task).save(job)


def _length(job: Job) -> int:
    """Of a segment; in mode rounds, a worker's is what it trains by itself."""
    return job.local_steps if job.mode == "rounds" else job.steps_per_segment


if __name__ == "__main__":
    main()
