"""What a person asks of one GPU pod. Every default equals the schema's, so a partial spec validates here as well."""

from __future__ import annotations

from datetime import timedelta

from gpupod_operator.api.base import ApiModel
from gpupod_operator.api.durations import Duration
from gpupod_operator.api.money import Money
from gpupod_operator.api.policies import (
    Approval,
    ArtifactsPolicy,
    Cloud,
    DeletionPolicy,
    EndPolicy,
    HostVolumePolicy,
    InFlightPolicy,
    OnSuccess,
    PodState,
    Readiness,
    RemediationAction,
    UpdateStrategy,
)
from gpupod_operator.api.times import Time


class SecretKeyRef(ApiModel):
    """A key of a Secret in the object's namespace."""

    name: str
    key: str


class SecretRef(ApiModel):
    """A Secret in the object's namespace, whole."""

    name: str


class AccountSpec(ApiModel):
    """The RunPod account that pays."""

    secret_ref: SecretKeyRef


class Candidate(ApiModel):
    """One choice of hardware. `max_price_per_hour` is USD for the whole pod; empty `data_centers`: any."""

    gpu_type: str
    count: int = 1
    cloud: Cloud = Cloud.SECURE
    data_centers: tuple[str, ...] = ()
    max_price_per_hour: Money | None = None


class PlacementSpec(ApiModel):
    """Where the pod may be placed; candidates are tried in order."""

    candidates: tuple[Candidate, ...] = ()
    min_cuda_version: str | None = None
    min_ram_per_gpu_gb: int | None = None
    min_vcpu_per_gpu: int | None = None
    capacity_wait: Duration = timedelta(hours=24)


class EnvVarSource(ApiModel):
    """Where an environment value comes from."""

    secret_key_ref: SecretKeyRef


class EnvVar(ApiModel):
    """One environment variable: exactly one of the three sources is set."""

    name: str
    value: str | None = None
    value_from: EnvVarSource | None = None
    runpod_secret: str | None = None


class ContainerSpec(ApiModel):
    """What runs on the pod. `registry` is a RunPod registry credential id."""

    image: str | None = None
    entrypoint: tuple[str, ...] = ()
    cmd: tuple[str, ...] = ()
    env: tuple[EnvVar, ...] = ()
    ports: tuple[str, ...] = ("22/tcp",)
    disk_gb: int = 50
    registry: str | None = None


class NetworkVolumeMount(ApiModel):
    """A network volume: outlives the pod, one data center for life."""

    volume_id: str
    path: str = "/workspace"


class PersistentVolumeMount(ApiModel):
    """A volume on the host: survives a stop, dies with the pod."""

    size_gb: int
    path: str = "/workspace"


class VolumeSpec(ApiModel):
    """Exactly one of the two is set."""

    network: NetworkVolumeMount | None = None
    persistent: PersistentVolumeMount | None = None


class SshSpec(ApiModel):
    """The key pair to log in with; without one the operator's own of the namespace."""

    key_secret_ref: SecretRef | None = None


class WorkloadSpec(ApiModel):
    """What is started over SSH once per (pod id, start)."""

    command: tuple[str, ...] = ()
    check: tuple[str, ...] = ()
    log_file: str | None = None
    stall_after: Duration = timedelta(minutes=15)
    on_success: OnSuccess = OnSuccess.STOP


class HealthSpec(ApiModel):
    """When the pod counts as ready, unreachable, wedged."""

    readiness: Readiness = Readiness.AUTH
    start_timeout: Duration = timedelta(minutes=20)
    ssh_wait: Duration = timedelta(minutes=10)
    wedge_after: Duration = timedelta(minutes=15)
    confirmations: int = 3
    resumes: int = 0


class RemediationSpec(ApiModel):
    """What a wedge leads to, and what may be lost by it."""

    action: RemediationAction = RemediationAction.MIGRATE
    approval: Approval = Approval.WHEN_VERIFIED
    artifacts: ArtifactsPolicy = ArtifactsPolicy.REQUIRE_VERIFIED
    in_flight: InFlightPolicy = InFlightPolicy.RERUN
    host_volume: HostVolumePolicy = HostVolumePolicy.KEEP
    max_migrations: int = 3
    window: Duration = timedelta(hours=24)


class DiagnosisSpec(ApiModel):
    """How long a pod whose workload failed stays up for a person to look at."""

    ttl: Duration = timedelta(hours=6)
    on_expiry: EndPolicy = EndPolicy.STOP
    owner: str | None = None
    until: Time | None = None


class SpendSpec(ApiModel):
    """What may be paid. Amounts in USD."""

    allow_paid: bool = True
    max_price_per_hour: Money | None = None
    max_total: Money | None = None
    ttl: Duration | None = None
    on_limit: EndPolicy = EndPolicy.STOP
    unlaunched_after: Duration = timedelta(minutes=60)


class AdoptSpec(ApiModel):
    """Take over exactly this pod."""

    pod_id: str


class EndpointOverride(ApiModel):
    """Pins host, port or both; with `pod_id` only while that pod is the recorded one."""

    host: str | None = None
    port: int | None = None
    pod_id: str | None = None


class PodsConfSpec(ApiModel):
    """The object's row in pods.conf. Name and label default to the object's name."""

    publish: bool = True
    name: str | None = None
    label: str | None = None
    endpoint_override: EndpointOverride | None = None


class GpuPodSpec(ApiModel):
    """The spec of a GpuPod. The controller never writes it."""

    state: PodState = PodState.RUNNING
    paused: bool = False
    account: AccountSpec | None = None
    placement: PlacementSpec = PlacementSpec()
    container: ContainerSpec = ContainerSpec()
    volume: VolumeSpec | None = None
    ssh: SshSpec = SshSpec()
    workload: WorkloadSpec = WorkloadSpec()
    health: HealthSpec = HealthSpec()
    remediation: RemediationSpec = RemediationSpec()
    diagnosis: DiagnosisSpec = DiagnosisSpec()
    spend: SpendSpec = SpendSpec()
    adopt: AdoptSpec | None = None
    keep_running: bool = False
    deletion_policy: DeletionPolicy = DeletionPolicy.TERMINATE
    update_strategy: UpdateStrategy = UpdateStrategy.ON_DELETE
    pods_conf: PodsConfSpec = PodsConfSpec()
