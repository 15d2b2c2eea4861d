"""`trainyard.fit`, on a devnet that runs, with terms as everybody has them there.

python -m benchmarks.end_to_end_requester JOB
"""

import os
import time
from typing import TYPE_CHECKING, Any

from benchmarks.end_to_end_jobs import Job, Outcome, given_job, save_weights, weights_file

if TYPE_CHECKING:
    from trainyard.sdk.fitting import Wishes

RECEIPT = "receipt.json"


def main() -> None:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    job = given_job()
    import keras

    import trainyard

    model = keras.saving.load_model(job.model)
    images, labels = job.arrays()
    with trainyard.connect("devnet", folder=job.devnet) as market:
        began, clock = time.perf_counter(), time.time()
        history = trainyard.fit(model, images, labels, market=market, verbose=0, **_wishes(job))
        seconds = time.perf_counter() - began
    save_weights(weights_file(job), model.get_weights())
    history.receipt.save(job.folder / RECEIPT)
    Outcome(seconds=seconds, task=history.task, began_at=clock).save(job)


def _wishes(job: Job) -> "Wishes":
    found: Wishes = {
        "epochs": job.epochs,
        "batch_size": job.batch,
        "workers": job.workers,
        "mode": job.mode,
        "verify": job.verify,
        "threads": job.threads,
        "seed": job.seed,
        "deadline": 3600,
    }
    if job.mode == "rounds":
        rounds: Any = {"local_steps": job.local_steps, **job.rounds_wish}
        found["rounds"] = rounds
    elif job.steps_per_segment is not None:
        found["steps_per_segment"] = job.steps_per_segment
    return found


if __name__ == "__main__":
    main()
