"""The daemon of a worker: it watches the market, takes tasks, trains, proves, and is paid."""
