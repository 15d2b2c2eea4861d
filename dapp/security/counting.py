"""Figures for Prometheus, of one server."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1.0, 2.5, 10.0)


class Counts:
    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "trainyard_dapp_requests",
            "Answers, by route and status",
            ("method", "route", "status"),
            registry=self.registry,
        )
        self.seconds = Histogram(
            "trainyard_dapp_request_seconds",
            "Time to the first byte of an answer, by route",
            ("route",),
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self.refused = Counter(
            "trainyard_dapp_refused", "Requests that were refused", ("why",), registry=self.registry
        )
        self.listeners = Gauge("trainyard_dapp_listeners", "Open streams", registry=self.registry)
        self.head = Gauge(
            "trainyard_dapp_index_block", "The last block of the index", registry=self.registry
        )
        self.lag = Gauge(
            "trainyard_dapp_index_lag_blocks",
            "Blocks that the index is behind",
            registry=self.registry,
        )
        self.events = Counter(
            "trainyard_dapp_indexed_events", "Events that were indexed", registry=self.registry
        )
        self.reorgs = Counter(
            "trainyard_dapp_reorgs", "Reorgs that were followed", registry=self.registry
        )
        self.feed = Counter(
            "trainyard_dapp_feed_batches",
            "Batches of workers",
            ("outcome",),
            registry=self.registry,
        )

    def render(self) -> bytes:
        return generate_latest(self.registry)
