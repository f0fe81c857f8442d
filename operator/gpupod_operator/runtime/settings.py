"""How one operator process is set up: flags of `gpupod-operator run`, or GPUPOD_* in its environment."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Annotated

from pydantic import Field, StringConstraints
from pydantic_settings import BaseSettings, SettingsConfigDict

from gpupod_operator.core.policy import Policy
from gpupod_operator.core.room import Ceilings

RUNPOD_API = "https://api.runpod.io"
HUB = "https://huggingface.co"


class Settings(BaseSettings):
    """Durations in seconds. No field holds a secret: keys are files or Secrets, read when they are needed."""

    model_config = SettingsConfigDict(env_prefix="GPUPOD_", frozen=True)

    runpod_api: str = RUNPOD_API
    hub_endpoint: str = HUB
    runpod_key_file: Path | None = Path("/etc/gpupod/runpod/api-key")
    namespace: str = "gpupod-system"
    watch_namespaces: tuple[
        Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")], ...
    ] = ()
    instance_id: str | None = None
    observe_every: float = Field(default=15.0, gt=0)
    visit_every: float = Field(default=30.0, gt=0)
    create_settle: float = Field(default=60.0, gt=0)
    timer_grace: float = Field(default=600.0, gt=0)
    reap_orphans: bool = False
    max_hourly_account: Decimal | None = Field(default=None, ge=0)
    max_hourly_namespace: Decimal | None = Field(default=None, ge=0)
    max_pods: int | None = Field(default=None, ge=0)
    ssh_identity_file: str = "~/.ssh/id_ed25519"
    ssh_known_hosts_file: str = "~/.ssh/gpupod_known_hosts"
    lease_name: str = "gpupod-operator"
    leader_elect: bool = True
    health_host: str = "0.0.0.0"  # noqa: S104 - the kubelet probes the pod's own address
    health_port: int = 8080
    metrics_port: int = 9090
    log_format: str = Field(default="json", pattern="^(json|plain)$")
    log_level: str = "INFO"

    def ceilings(self) -> Ceilings:
        """What all objects together may use."""
        return Ceilings(self.max_hourly_account, self.max_hourly_namespace, self.max_pods)

    def policy(self) -> Policy:
        """The operator's own timings for the decisions."""
        return Policy(
            observe_every=timedelta(seconds=self.observe_every),
            visit_every=timedelta(seconds=self.visit_every),
            create_settle=timedelta(seconds=self.create_settle),
            fresh_grace=timedelta(seconds=self.create_settle),
            timer_grace=timedelta(seconds=self.timer_grace),
        )
