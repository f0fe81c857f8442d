"""Every reason of every condition, with what a person can do about it. The only list there is."""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """Why a condition is as it is; `remedy` is the edit that helps."""

    READY = "Ready"
    OBSERVED = "Observed"
    SUPPORTED = "Supported"
    PROVISIONING = "Provisioning"
    PROVISIONED = "Provisioned"
    STARTING = "Starting"
    CREATING = "Creating"
    DELETING = "Deleting"
    MIGRATING = "Migrating"
    DRAINING = "Draining"
    REACHABLE = "Reachable"
    NO_SSH_WANTED = "NoSshWanted"
    NO_POD = "NoPod"
    PENDING = "Pending"
    NO_CAPACITY = "NoCapacity"
    CAPACITY_WAIT_EXHAUSTED = "CapacityWaitExhausted"
    NO_COMPUTE_AVAILABLE = "NoComputeAvailable"
    INSUFFICIENT_BALANCE = "InsufficientBalance"
    INVALID_REQUEST = "InvalidRequest"
    UNKNOWN_GPU_TYPE = "UnknownGpuType"
    SPEC_INCOMPLETE = "SpecIncomplete"
    SECRET_NOT_FOUND = "SecretNotFound"  # noqa: S105 - a word, not a secret
    SECRET_KEY_MISSING = "SecretKeyMissing"  # noqa: S105 - a word, not a secret
    UNAUTHORIZED = "Unauthorized"
    ACCOUNT_MISMATCH = "AccountMismatch"
    VOLUME_NOT_FOUND = "VolumeNotFound"
    IMAGE_ERROR = "ImageError"
    CREATE_UNKNOWN = "CreateUnknown"
    ADOPT_NOT_FOUND = "AdoptNotFound"
    ADOPT_FOREIGN = "AdoptForeign"
    ADOPT_CONFLICT = "AdoptConflict"
    TAKEN_OVER = "TakenOver"
    GHOST_FOUND = "GhostFound"
    DUPLICATE_PODS = "DuplicatePods"
    STOPPED_OUTSIDE = "StoppedOutside"
    STOPPED_BY_ORDER = "StoppedByOrder"
    STOP_REQUESTED = "StopRequested"
    STOPPING = "Stopping"
    TERMINATED_OUTSIDE = "TerminatedOutside"
    START_REFUSED = "StartRefused"
    PORT_NOT_DECLARED = "PortNotDeclared"
    NEVER_PUBLISHED = "NeverPublished"
    PORT_LOST = "PortLost"
    STALE_PORT = "StalePort"
    PRIVATE_MAPPING_ONLY = "PrivateMappingOnly"
    SLOW_PULL = "SlowPull"
    HOST_UNRESPONSIVE = "HostUnresponsive"
    SERVICE_NOT_READY = "ServiceNotReady"
    AUTH_DENIED = "AuthDenied"
    HOST_KEY = "HostKey"
    NAME_RESOLUTION = "NameResolution"
    PROVIDER_MISREPORT = "ProviderMisreport"
    HOST_FAULT = "HostFault"
    ZERO_GPU = "ZeroGpu"
    PROVIDER_STATUS_UNKNOWN = "ProviderStatusUnknown"
    OBSERVATION_SUSPECT = "ObservationSuspect"
    OBSERVATION_FAILED = "ObservationFailed"
    PROVIDER_API_GONE = "ProviderAPIGone"
    THROTTLED = "Throttled"
    BREAKER_OPEN = "BreakerOpen"
    MIGRATION_BUDGET_EXHAUSTED = "MigrationBudgetExhausted"
    REPORT_ONLY = "ReportOnly"
    APPROVAL_REQUIRED = "ApprovalRequired"
    APPROVAL_EXPIRED = "ApprovalExpired"
    PAUSED = "Paused"
    KEEP_RUNNING = "KeepRunning"
    HOST_VOLUME_KEPT = "HostVolumeKept"
    CELLS_UNVERIFIED = "CellsUnverified"
    CELLS_UNKNOWN = "CellsUnknown"
    NO_CELLS_DECLARED = "NoCellsDeclared"
    ALL_VERIFIED = "AllVerified"
    DISPOSABLE = "Disposable"
    NOT_STARTED = "NotStarted"
    START_FAILED = "StartFailed"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    STALLED = "Stalled"
    WORKLOAD_UNKNOWN = "WorkloadUnknown"
    NO_WORKLOAD = "NoWorkload"
    POD_NOT_RUNNING = "PodNotRunning"
    CELLS_NOT_PRODUCED = "CellsNotProduced"
    RELEASED = "Released"
    TEARDOWN_BLOCKED = "TeardownBlocked"
    CONFIRMING_GONE = "ConfirmingGone"
    PRICE_OVER_CAP = "PriceOverCap"
    GPU_COUNT_MISMATCH = "GpuCountMismatch"
    ALLOWED = "Allowed"
    OVERRIDE_INCOMPLETE = "OverrideIncomplete"
    OVERRIDE_DIFFERS = "OverrideDiffers"
    NAME_CONFLICT = "NameConflict"
    NO_ENDPOINT = "NoEndpoint"
    REGISTERED = "Registered"
    REGISTRATION_FAILED = "RegistrationFailed"
    PUBLISH_DISABLED = "PublishDisabled"
    NOT_IMPLEMENTED_YET = "NotImplementedYet"
    RESET_REQUIRED = "ResetRequired"
    REPLACE_REQUIRED = "ReplaceRequired"
    RESET_BLOCKED = "ResetBlocked"
    REPLACE_BLOCKED = "ReplaceBlocked"
    UP_TO_DATE = "UpToDate"
    POD_ENDED = "PodEnded"
    DESTINATION_CONFLICT = "DestinationConflict"
    POD_NOT_FOUND = "PodNotFound"
    HUB_UNAUTHORIZED = "HubUnauthorized"
    HUB_FORBIDDEN = "HubForbidden"
    HUB_REPO_NOT_FOUND = "HubRepoNotFound"
    HUB_UNAVAILABLE = "HubUnavailable"
    QUOTA_EXCEEDED = "QuotaExceeded"
    RATE_LIMITED = "RateLimited"
    MISSING_NO_SOURCE = "MissingNoSource"
    AGENT_UNAVAILABLE = "AgentUnavailable"
    AGENT_FAILED = "AgentFailed"
    PYTHON_TOO_OLD = "PythonTooOld"
    SYMLINKED_DIRECTORY = "SymlinkedDirectory"
    PATH_MISSING = "PathMissing"
    BAD_ARTIFACTS = "BadArtifacts"
    MISMATCH = "Mismatch"
    MISSING = "Missing"
    ACCEPTED = "Accepted"
    PRODUCING = "Producing"
    PRODUCED = "Produced"
    UPLOADING = "Uploading"
    UPLOADED = "Uploaded"
    VERIFIED = "Verified"
    VERIFICATION_PENDING = "VerificationPending"
    DATA_LOST = "DataLost"
    ABANDONED = "Abandoned"
    INTERNAL_ERROR = "InternalError"

    @property
    def remedy(self) -> str:
        """What a person can do about it, in half a sentence."""
        return REMEDIES[self]


REMEDIES: dict[Reason, str] = {
    Reason.READY: "nothing to do",
    Reason.OBSERVED: "nothing to do",
    Reason.SUPPORTED: "nothing to do",
    Reason.PROVISIONING: "wait; the pod bills from its creation",
    Reason.PROVISIONED: "nothing to do",
    Reason.STARTING: "wait within health.startTimeout",
    Reason.CREATING: "wait",
    Reason.DELETING: "wait until the pod is proven gone",
    Reason.MIGRATING: "wait; status.migration.step shows the step",
    Reason.DRAINING: "wait until the agent has uploaded what was finished",
    Reason.REACHABLE: "nothing to do",
    Reason.NO_SSH_WANTED: "declare 22/tcp in container.ports to have it probed",
    Reason.NO_POD: "create one: spec.state Running and spend.allowPaid true",
    Reason.PENDING: "wait",
    Reason.NO_CAPACITY: "add candidates, or wait; nothing bills meanwhile",
    Reason.CAPACITY_WAIT_EXHAUSTED: "change placement, or set gpupod.dev/reconcile-at",
    Reason.NO_COMPUTE_AVAILABLE: "set spend.allowPaid to true",
    Reason.INSUFFICIENT_BALANCE: "top up the RunPod account",
    Reason.INVALID_REQUEST: "correct the field that RunPod names; nothing is retried until the spec changes",
    Reason.UNKNOWN_GPU_TYPE: "use one of the names in the message",
    Reason.SPEC_INCOMPLETE: "add placement.candidates and container.image",
    Reason.SECRET_NOT_FOUND: "create the Secret that the message names in the object's namespace",
    Reason.SECRET_KEY_MISSING: "add the key to the Secret that the message names",
    Reason.UNAUTHORIZED: "put a valid RunPod key into the Secret",
    Reason.ACCOUNT_MISMATCH: "put back a key of the recorded account",
    Reason.VOLUME_NOT_FOUND: "correct spec.volume.network.volumeId",
    Reason.IMAGE_ERROR: "correct container.image or container.registry",
    Reason.CREATE_UNKNOWN: "wait; complete lists settle it",
    Reason.ADOPT_NOT_FOUND: "correct or remove spec.adopt.podId",
    Reason.ADOPT_FOREIGN: "remove spec.adopt; the pod belongs to somebody else",
    Reason.ADOPT_CONFLICT: "remove spec.adopt in one of the two objects",
    Reason.TAKEN_OVER: "nothing to do",
    Reason.GHOST_FOUND: "nothing to do; it is deleted",
    Reason.DUPLICATE_PODS: "terminate the pod you do not want",
    Reason.STOPPED_OUTSIDE: "set gpupod.dev/resume, or spec.state Stopped and then Running",
    Reason.STOPPED_BY_ORDER: "set spec.state to Running, or gpupod.dev/resume",
    Reason.STOP_REQUESTED: "set spec.state to Running",
    Reason.STOPPING: "wait",
    Reason.TERMINATED_OUTSIDE: "set gpupod.dev/resume to have a new pod created",
    Reason.START_REFUSED: "wait for a free GPU on its host, or migrate",
    Reason.PORT_NOT_DECLARED: "add 22/tcp to container.ports",
    Reason.NEVER_PUBLISHED: "wait; past health.wedgeAfter it is migrated",
    Reason.PORT_LOST: "wait; past health.wedgeAfter it is migrated",
    Reason.STALE_PORT: "nothing to do; the row is re-rendered",
    Reason.PRIVATE_MAPPING_ONLY: "wait; past health.wedgeAfter it is migrated",
    Reason.SLOW_PULL: "wait within the start budget",
    Reason.HOST_UNRESPONSIVE: "wait; past health.wedgeAfter it is migrated",
    Reason.SERVICE_NOT_READY: "check the image's sshd",
    Reason.AUTH_DENIED: "check that the image honours PUBLIC_KEY",
    Reason.HOST_KEY: "stop and start the pod, or migrate it",
    Reason.NAME_RESOLUTION: "correct endpointOverride.host",
    Reason.PROVIDER_MISREPORT: "nothing to do; the pod answers",
    Reason.HOST_FAULT: "wait; the pod is moved to a fresh host",
    Reason.ZERO_GPU: "wait; the start counts as failed",
    Reason.PROVIDER_STATUS_UNKNOWN: "wait; upgrade the operator if it persists",
    Reason.OBSERVATION_SUSPECT: "check that the key still belongs to the right team",
    Reason.OBSERVATION_FAILED: "wait; nothing is acted on while the provider cannot be read",
    Reason.PROVIDER_API_GONE: "upgrade the operator",
    Reason.THROTTLED: "wait",
    Reason.BREAKER_OPEN: "set gpupod.dev/close-breaker once the provider has recovered",
    Reason.MIGRATION_BUDGET_EXHAUSTED: "raise remediation.maxMigrations, or set gpupod.dev/migrate",
    Reason.REPORT_ONLY: "set remediation.action to Migrate, or gpupod.dev/migrate",
    Reason.APPROVAL_REQUIRED: "set gpupod.dev/approve-terminate to the pod id",
    Reason.APPROVAL_EXPIRED: "set gpupod.dev/approve-terminate anew",
    Reason.PAUSED: "set spec.paused to false",
    Reason.KEEP_RUNNING: "set spec.keepRunning to false",
    Reason.HOST_VOLUME_KEPT: "set remediation.hostVolume to Discard",
    Reason.CELLS_UNVERIFIED: "wait for the upload, or set gpupod.dev/abandon-data",
    Reason.CELLS_UNKNOWN: "wait until the cells can be read, or set gpupod.dev/abandon-data",
    Reason.NO_CELLS_DECLARED: "declare SweepCells, or set remediation.artifacts to Disposable",
    Reason.ALL_VERIFIED: "nothing to do",
    Reason.DISPOSABLE: "nothing to do",
    Reason.NOT_STARTED: "wait",
    Reason.START_FAILED: "correct workload.command or workload.check",
    Reason.RUNNING: "nothing to do",
    Reason.SUCCEEDED: "nothing to do",
    Reason.FAILED: "read the workload's log",
    Reason.STALLED: "read the workload's log",
    Reason.WORKLOAD_UNKNOWN: "wait; the pod cannot be read",
    Reason.NO_WORKLOAD: "set workload.command to have one started",
    Reason.POD_NOT_RUNNING: "wait for the pod",
    Reason.CELLS_NOT_PRODUCED: "check why the workload did not produce the cells that are named",
    Reason.RELEASED: "nothing to do; the pod is no longer this operator's",
    Reason.TEARDOWN_BLOCKED: "follow the edit in the message",
    Reason.CONFIRMING_GONE: "wait; it counts as billing until proven gone",
    Reason.PRICE_OVER_CAP: "raise maxPricePerHour, or name cheaper candidates",
    Reason.GPU_COUNT_MISMATCH: "wait; the pod is undone",
    Reason.ALLOWED: "nothing to do",
    Reason.OVERRIDE_INCOMPLETE: "give both host and port in podsConf.endpointOverride",
    Reason.OVERRIDE_DIFFERS: "remove podsConf.endpointOverride to return to live values",
    Reason.NAME_CONFLICT: "choose another podsConf.name",
    Reason.NO_ENDPOINT: "wait for a mapping",
    Reason.REGISTERED: "nothing to do",
    Reason.REGISTRATION_FAILED: "see the message; it is retried",
    Reason.PUBLISH_DISABLED: "set podsConf.publish to true",
    Reason.NOT_IMPLEMENTED_YET: "remove the field that the message names",
    Reason.RESET_REQUIRED: "set gpupod.dev/migrate, or updateStrategy Recreate",
    Reason.REPLACE_REQUIRED: "set gpupod.dev/migrate, or updateStrategy Recreate",
    Reason.RESET_BLOCKED: "follow the edit in the message",
    Reason.REPLACE_BLOCKED: "follow the edit in the message",
    Reason.UP_TO_DATE: "nothing to do",
    Reason.POD_ENDED: "set gpupod.dev/resume on the GpuPod",
    Reason.DESTINATION_CONFLICT: "give the younger cell another destination.path",
    Reason.POD_NOT_FOUND: "create the GpuPod that podRef names",
    Reason.HUB_UNAUTHORIZED: "put a valid token into the Secret",
    Reason.HUB_FORBIDDEN: "give the token write access to the repository",
    Reason.HUB_REPO_NOT_FOUND: "create the repository, or correct destination.repo",
    Reason.HUB_UNAVAILABLE: "wait; nothing is taken for missing meanwhile",
    Reason.QUOTA_EXCEEDED: "free or buy storage on the Hub",
    Reason.RATE_LIMITED: "wait for the Hub's commit window",
    Reason.MISSING_NO_SOURCE: "re-run the cell, or restore the file on the Hub",
    Reason.AGENT_UNAVAILABLE: "wait until the agent runs on the pod",
    Reason.AGENT_FAILED: "see the message",
    Reason.PYTHON_TOO_OLD: "use an image with Python 3.10 or newer",
    Reason.SYMLINKED_DIRECTORY: "replace the symlinked directory by a real one",
    Reason.PATH_MISSING: "correct source.artifacts",
    Reason.BAD_ARTIFACTS: "correct source.artifacts",
    Reason.MISMATCH: "another writer changed the files: choose another path, or remove them on the Hub",
    Reason.MISSING: "wait; missing files are uploaded again",
    Reason.ACCEPTED: "nothing to do",
    Reason.PRODUCING: "wait",
    Reason.PRODUCED: "wait for the upload",
    Reason.UPLOADING: "wait",
    Reason.UPLOADED: "wait for the verification",
    Reason.VERIFIED: "nothing to do",
    Reason.VERIFICATION_PENDING: "wait for a listing",
    Reason.DATA_LOST: "the cell is computed again by the next attempt",
    Reason.ABANDONED: "nothing to do",
    Reason.INTERNAL_ERROR: "report it with the log line",
}
