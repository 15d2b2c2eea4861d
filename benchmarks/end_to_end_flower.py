"""Flower: FedAvg over two clients, by its simulation, which has a process for each.

    build/flower/bin/python -m benchmarks.end_to_end_flower JOB

In an environment of its own, without anything of ours but the job.
"""

import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from flwr.app import ArrayRecord, Context
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation

from benchmarks.end_to_end_flower_client import JOB
from benchmarks.end_to_end_flower_client import app as client
from benchmarks.end_to_end_jobs import (
    Job,
    Moments,
    Outcome,
    first_weights,
    given_job,
    load_weights,
    save_weights,
    weights_file,
)

_OBJECT_STORE_BYTES = 256 << 20


def main() -> None:
    job = given_job()
    os.environ[JOB] = str(Path(sys.argv[1]).absolute())
    first = ArrayRecord(load_weights(first_weights(job.model)))
    done: dict[str, Any] = {}

    def keep(number: int, arrays: ArrayRecord) -> None:
        # Nobody evaluates in between, here as elsewhere; what there was then is tried afterwards.
        if number:
            moments.keep(arrays.to_numpy_ndarrays())

    def serve(grid: Grid, context: Context) -> None:
        strategy = FedAvg(fraction_evaluate=0.0, min_train_nodes=job.workers)
        done["result"] = strategy.start(grid, first, num_rounds=job.rounds, evaluate_fn=keep)
        done["at"] = time.perf_counter()

    server = ServerApp()
    server.main()(serve)
    began, moments = time.perf_counter(), Moments(job, time.time())
    # Of a short name, and not below the job's: a socket's path has 107 bytes at most.
    folder = tempfile.mkdtemp(prefix="r-")
    try:
        backend = _backend(job, folder)
        run_simulation(server, client, num_supernodes=job.workers, backend_config=backend)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    result = done["result"]
    told = list(result.train_metrics_clientapp.values())
    if len(told) != job.rounds:
        raise SystemExit(f"{len(told)} of {job.rounds} rounds came to an end")
    save_weights(weights_file(job), result.arrays.to_numpy_ndarrays())
    # A mean over clients that weigh alike.
    sent = sum(int(one["sent-bytes"]) * job.workers for one in told)
    Outcome(seconds=done["at"] - began, sent_bytes=sent).save(job)


def _backend(job: Job, folder: str) -> dict[str, dict[str, Any]]:
    return {
        "init_args": {
            "num_cpus": job.workers,
            "include_dashboard": False,
            "object_store_memory": _OBJECT_STORE_BYTES,
            "_node_ip_address": "127.0.0.1",
            "_temp_dir": folder,
        },
        "client_resources": {"num_cpus": 1, "num_gpus": 0.0},
    }


if __name__ == "__main__":
    main()
