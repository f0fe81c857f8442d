"""The numbers for people: what was wanted, what was measured; and the whole of it as JSON."""

import json
import platform
from typing import Any

from rich.console import Console
from rich.table import Table


def show(numbers: dict[str, Any], console: Console) -> None:
    """A plain table of the questions that the bench answers."""
    table = Table(title=f"{numbers['pods']} GpuPods in {numbers['namespaces']} namespace(s)", title_justify="left")
    table.add_column("measured")
    table.add_column("wanted", justify="right")
    table.add_column("found", justify="right")
    for row in _rows(numbers):
        table.add_row(*row)
    console.print(table)


def as_json(numbers: dict[str, Any]) -> str:
    machine = {"python": platform.python_version(), "machine": platform.machine(), "kernel": platform.release()}
    return json.dumps({"machine": machine, **numbers}, indent=1, default=str)


def _rows(numbers: dict[str, Any]) -> list[tuple[str, str, str]]:
    launch, idle, single = numbers["launch"], numbers["idle"], numbers["idle_apply"]
    peak = max(launch["operator_peak_rss_mb"], idle["operator_peak_rss_mb"])
    after = launch["create_call_after_apply_s"]
    cpu = 1000 * launch["cpu_s"]["operator"] / launch["objects"]
    rows = [
        ("objects Ready per second, from the first apply", ">= 50", f"{launch['ready_per_s']:.1f}"),
        ("objects Ready per second, once a list shows them", "", f"{launch['ready_per_s_once_listed']:.1f}"),
        ("operator, peak RSS", "<= 100 MB", f"{peak:.0f} MB"),
        ("operator, CPU per object until Ready", "", f"{cpu:.1f} ms"),
        ("provider calls per minute, fleet at rest", "4", f"{idle['provider_calls_per_min']:.1f}"),
        ("provider lists during the launch", "", f"{launch['provider_lists']} in {launch['seconds']:.0f} s"),
        ("provider calls per minute, launch", "", f"{launch['provider_calls_per_min']:.0f}"),
        ("Kubernetes writes per object, events included", "", f"{launch['kubernetes_writes_per_object']:.1f}"),
        (f"Kubernetes writes in {idle['seconds']:g} s at rest", "0", str(sum(idle["kubernetes_writes"].values()))),
        (f"provider mutations in {idle['seconds']:g} s at rest", "0", str(idle["provider_mutations"])),
        ("operator, CPU at rest", "", f"{idle['operator_cpu_percent']:.1f} %"),
        ("apply to the first provider call, idle", "< 1 s", f"{single['first_call_s']['median']:.2f} s"),
        ("apply to the create call, idle", "< 1 s", f"{single['create_call_s']['median']:.2f} s"),
        ("apply to Ready, idle", "", f"{single['ready_s']['median']:.1f} s"),
        ("apply to the create call, under this load", "", f"{after['median']:.1f} s, p95 {after['p95']:.1f} s"),
    ]
    restart = numbers.get("restart")
    if restart is not None:
        rows.append(("restart until all are observed", "", f"{restart['observed_again_s']:.1f} s"))
    return rows
