"""Every closed set of words in spec."""

from __future__ import annotations

from enum import StrEnum


class PodState(StrEnum):
    """What the person wants the pod to be."""

    RUNNING = "Running"
    STOPPED = "Stopped"


class Cloud(StrEnum):
    """RunPod's two kinds of host."""

    SECURE = "Secure"
    COMMUNITY = "Community"


class Readiness(StrEnum):
    """Levels of reachability, each including the one before."""

    MAPPING = "Mapping"
    TCP = "Tcp"
    AUTH = "Auth"


class OnSuccess(StrEnum):
    """What a workload that succeeded with every cell verified leads to."""

    KEEP = "Keep"
    STOP = "Stop"
    TERMINATE = "Terminate"


class EndPolicy(StrEnum):
    """How an expiry (diagnosis, ttl, maxTotal) ends the pod."""

    STOP = "Stop"
    TERMINATE = "Terminate"


class RemediationAction(StrEnum):
    """What a wedge leads to."""

    MIGRATE = "Migrate"
    STOP = "Stop"
    REPORT = "Report"


class Approval(StrEnum):
    """Who approves an automatic end: the gate's table alone, or a person besides."""

    WHEN_VERIFIED = "WhenVerified"
    MANUAL = "Manual"


class ArtifactsPolicy(StrEnum):
    """Whether unverified results hold the pod."""

    REQUIRE_VERIFIED = "RequireVerified"
    DISPOSABLE = "Disposable"


class InFlightPolicy(StrEnum):
    """Cells not known to be finished when contact was lost."""

    RERUN = "Rerun"
    BLOCK = "Block"


class HostVolumePolicy(StrEnum):
    """Whether a persistent volume, which dies with its host, holds a migration."""

    KEEP = "Keep"
    DISCARD = "Discard"


class DeletionPolicy(StrEnum):
    """What deleting the object does to the pod."""

    TERMINATE = "Terminate"
    STOP = "Stop"
    ORPHAN = "Orphan"


class UpdateStrategy(StrEnum):
    """What a change does that needs a new pod or resets the container."""

    ON_DELETE = "OnDelete"
    RECREATE = "Recreate"


class RepoType(StrEnum):
    """Kinds of Hub repository that can be a destination."""

    DATASET = "dataset"
    MODEL = "model"


class UploadMode(StrEnum):
    """Who uploads."""

    AGENT = "Agent"
    OPERATOR = "Operator"
    EXTERNAL = "External"


class TokenFrom(StrEnum):
    """Where the uploader takes the Hub token from."""

    SECRET = "Secret"  # noqa: S105 - a word, not a secret
    POD_ENV = "PodEnv"


class Verify(StrEnum):
    """How a landed cell is checked."""

    HASH = "Hash"
    READ_BACK = "ReadBack"
