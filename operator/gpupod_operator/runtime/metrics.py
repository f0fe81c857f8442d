"""What the operator tells Prometheus. Bounded cardinality: money and phases by object, never by message."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from gpupod_operator import __version__


class Metrics:
    """All series of one process, on a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        build = Gauge("gpupod_build_info", "Version of the operator.", ["version"], registry=self.registry)
        build.labels(__version__).set(1)
        self.reconcile_seconds = Histogram(
            "controller_runtime_reconcile_time_seconds", "Time of one pass.", ["controller"], registry=self.registry
        )
        self.reconcile_total = Counter(
            "controller_runtime_reconcile", "Passes by outcome.", ["controller", "result"], registry=self.registry
        )
        self.queue_age = Gauge(
            "workqueue_longest_running_processor_seconds", "Age of the oldest running pass.", registry=self.registry
        )
        self.provider_calls = Counter(
            "gpupod_provider_calls", "Provider calls by call and outcome.", ["call", "outcome"], registry=self.registry
        )
        self.provider_seconds = Histogram(
            "gpupod_provider_call_seconds", "Duration of provider calls.", ["call"], registry=self.registry
        )
        self.kube_writes = Counter(
            "gpupod_kubernetes_writes", "Writes to the API server.", ["what"], registry=self.registry
        )
        self.phases = Gauge("gpupod_phase", "GpuPods by phase.", ["phase"], registry=self.registry)
        self.unreachable_seconds = Gauge(
            "gpupod_unreachable_billing_seconds",
            "How long a billing pod has been unreachable; 0 when it is not.",
            ["namespace", "name"],
            registry=self.registry,
        )
        self.unreachable_dollars = Gauge(
            "gpupod_unreachable_billing_dollars",
            "What the present unreachable episode has cost so far, USD.",
            ["namespace", "name"],
            registry=self.registry,
        )
        self.orphans = Gauge(
            "gpupod_orphan_dollars_per_hour",
            "Pods of this instance without an object.",
            ["pod"],
            registry=self.registry,
        )
        self.bucket_pods = Gauge(
            "gpupod_account_pods",
            "Pods of an account by what their money is for; unreachable and orphan are leaks.",
            ["account", "bucket"],
            registry=self.registry,
        )
        self.bucket_dollars = Gauge(
            "gpupod_account_dollars_per_hour",
            "What they bill per hour, USD, as far as their price is known.",
            ["account", "bucket"],
            registry=self.registry,
        )
        self.unlaunched = Gauge(
            "gpupod_unlaunched_dollars_per_hour",
            "Pods that have been Ready for spend.unlaunchedAfter without a launch.",
            ["namespace", "name"],
            registry=self.registry,
        )
        self.balance = Gauge(
            "gpupod_account_balance_dollars", "What the account has left, USD.", ["account"], registry=self.registry
        )
        self.runway = Gauge(
            "gpupod_account_runway_seconds",
            "How long a prepaid balance lasts at what the account's pods bill now; RunPod deletes pods at zero.",
            ["account"],
            registry=self.registry,
        )
        self.stuck_teardown = Gauge(
            "gpupod_teardown_blocked_dollars_per_hour",
            "Deleted objects whose pod still bills.",
            ["namespace", "name", "pod"],
            registry=self.registry,
        )
        self.events_lost = Counter(
            "gpupod_events_unwritten",
            "Events that could not be written; the log line stands in.",
            registry=self.registry,
        )

    def observe_call(self, call: str, outcome: str, seconds: float) -> None:
        """The client's hook: one provider call ended."""
        self.provider_calls.labels(call, outcome).inc()
        self.provider_seconds.labels(call).observe(seconds)
