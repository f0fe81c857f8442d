"""Every closed set of words in status: phases, intents, steps. Words of spec are in `policies`."""

from __future__ import annotations

from enum import StrEnum


class Phase(StrEnum):
    """Derived by one function from the rest of a GpuPod's status."""

    PENDING = "Pending"
    DEFERRED = "Deferred"
    WAITING_FOR_CAPACITY = "WaitingForCapacity"
    PROVISIONING = "Provisioning"
    STARTING = "Starting"
    READY = "Ready"
    UNREACHABLE = "Unreachable"
    WEDGED = "Wedged"
    MIGRATING = "Migrating"
    DIAGNOSING = "Diagnosing"
    STOPPING = "Stopping"
    STOPPED = "Stopped"
    TERMINATING = "Terminating"
    FAILED = "Failed"


class SweepCellPhase(StrEnum):
    """How far one cell's results are on their way to the Hub."""

    PENDING = "Pending"
    PRODUCING = "Producing"
    PRODUCED = "Produced"
    UPLOADING = "Uploading"
    PARTIAL = "Partial"
    VERIFIED = "Verified"
    BLOCKED = "Blocked"
    FAILED = "Failed"
    LOST = "Lost"


class AttemptCause(StrEnum):
    """Why an attempt (one pod id) was begun."""

    SPEC = "Spec"
    MIGRATION = "Migration"
    START = "Start"
    ADOPT = "Adopt"


class AttemptIntent(StrEnum):
    """The act that was recorded before it was made; NONE when nothing is open."""

    NONE = "None"
    CREATE = "Create"
    DELETE = "Delete"
    STOP = "Stop"
    START = "Start"
    PATCH = "Patch"
    LAUNCH = "Launch"
    DRAIN = "Drain"


class ProviderAct(StrEnum):
    """A mutating call to the provider."""

    CREATE = "Create"
    DELETE = "Delete"
    STOP = "Stop"
    START = "Start"
    PATCH = "Patch"


class EndedAct(StrEnum):
    """How a pod came to its end: by our stop, by our delete, or by somebody else."""

    STOP = "Stop"
    DELETE = "Delete"
    OUTSIDE = "Outside"


class MigrationStep(StrEnum):
    """Steps of a migration, each recorded before it is taken. GATE asks and deletes in one pass."""

    CAPTURE_LOGS = "CaptureLogs"
    GATE = "Gate"
    CONFIRM_GONE = "ConfirmGone"
    CREATE = "Create"
    AWAIT_READY = "AwaitReady"
    RELAUNCH = "Relaunch"
    DONE = "Done"


class WorkloadState(StrEnum):
    """UNKNOWN is what an SSH failure gives; it is never taken for dead."""

    NOT_STARTED = "NotStarted"
    STARTING = "Starting"
    START_FAILED = "StartFailed"
    RUNNING = "Running"
    STALLED = "Stalled"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    UNKNOWN = "Unknown"


class VerificationState(StrEnum):
    """What a listing of the Hub said about a cell; UNKNOWN keeps what was known and permits nothing."""

    VERIFIED = "Verified"
    MISSING = "Missing"
    MISMATCH = "Mismatch"
    PARTIAL = "Partial"
    UNKNOWN = "Unknown"
