"""What befalls pods and accounts from outside: dying hosts, people at the console, wedges, empty accounts."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from gpupod_rehearsal.runpod import lifecycle
from gpupod_rehearsal.runpod.faults import Rule, Subject
from gpupod_rehearsal.runpod.pod import SimPod, Status

if TYPE_CHECKING:
    from gpupod_rehearsal.runpod.cloud import Cloud

#: Faults that strike a RUNNING pod once it has run for their `uptime`.
_MID_RUN = ("wedge-later", "outside-stop", "outside-terminate")


def apply(cloud: Cloud) -> None:
    """Let the armed incidents strike whoever they fit now."""
    _kill_hosts(cloud)
    _drain_accounts(cloud)
    for pod in list(cloud.living()):
        for name in _MID_RUN:
            for rule in _due(cloud, name, pod):
                _strike(cloud, rule, pod)


def collect_debts(cloud: Cloud) -> None:
    """The vendor's billing job: without money, pods with a network volume are stopped and all others are deleted."""
    for account in cloud.accounts.values():
        if account.billing_mode != "PREPAID" or cloud.balance(account) > 0:
            continue
        for pod in cloud.pods_of(account):
            if not pod.alive:
                continue
            if pod.network is None:
                lifecycle.terminate(cloud, pod, by="Runpod")
            elif pod.status is not Status.EXITED:
                lifecycle.stop(cloud, pod, by="Runpod")


def deadlines(cloud: Cloud) -> list[datetime]:
    """When a mid-run incident comes due."""
    return [
        pod.running_at + timedelta(seconds=rule.number("uptime"))
        for rule in cloud.faults.rules
        if rule.kind.name in _MID_RUN and rule.left != 0
        for pod in cloud.living()
        if pod.running_at is not None
    ]


def _due(cloud: Cloud, name: str, pod: SimPod) -> list[Rule]:
    if pod.status is not Status.RUNNING or pod.running_at is None:
        return []
    ran = (cloud.now - pod.running_at).total_seconds()
    return [
        rule
        for rule in cloud.faults.rules
        if rule.kind.name == name
        and rule.left != 0
        and rule.active(cloud.now)
        and pod.id not in rule.victims
        and ran >= rule.number("uptime")
        and rule.target.matches(cloud.subject(pod))
    ]


def _strike(cloud: Cloud, rule: Rule, pod: SimPod) -> None:
    rule.seize(pod.id)
    if rule.kind.name == "outside-stop":
        lifecycle.stop(cloud, pod, by="console")
    elif rule.kind.name == "outside-terminate":
        lifecycle.terminate(cloud, pod, by="console")


def _kill_hosts(cloud: Cloud) -> None:
    if not cloud.faults.knows("host-death") and all(host.alive for host in cloud.hosts.values()):
        return
    for host in cloud.hosts.values():
        subject = Subject(host=host.id, data_center=host.data_center, gpu=host.gpu_type)
        rule = cloud.faults.grip("host-death", subject, host.id)
        if (rule is None) == host.alive:
            continue
        host.alive = rule is None
        for pod in cloud.living():
            if pod.host != host.id or pod.status is Status.EXITED:
                continue
            if rule is None:
                lifecycle.revive(cloud, pod)
            else:
                lifecycle.lose_host(cloud, pod, Status(rule.text("status")))


def _drain_accounts(cloud: Cloud) -> None:
    for account in cloud.accounts.values():
        rule = cloud.faults.held("balance-zero", account.id)
        if rule is None and cloud.faults.grip("balance-zero", Subject(account=account.id), account.id):
            account.deposited = cloud.ledger.spent(cloud.now, account=account.id)
