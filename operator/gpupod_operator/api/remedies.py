"""What a person can do about each reason: one line each, for `docs/reasons.md`. Complete by test."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from gpupod_operator.api.reasons import Reason

REMEDIES: Final[Mapping[Reason, str]] = MappingProxyType(
    {
        # Well, or under way.
        Reason.READY: "Nothing to do.",
        Reason.SUPPORTED: "Nothing to do.",
        Reason.OBSERVED: "Nothing to do.",
        Reason.PROVISIONED: "Nothing to do.",
        Reason.PROVISIONING: "Nothing to do: RunPod is placing the pod or pulling its image.",
        Reason.CREATING: "Nothing to do: the create call is being made.",
        Reason.STARTING: "Nothing to do: the container is starting.",
        Reason.STOPPING: "Nothing to do: the pod is being stopped.",
        Reason.STOPPED: "Set spec.state to Running to start the pod again.",
        Reason.STOP_REQUESTED: "Set spec.state to Running to have the pod again.",
        Reason.DELETING: "Nothing to do: the pod is being deleted; the message says what is still waited for.",
        Reason.MIGRATING: "Nothing to do: the message names the step.",
        Reason.REACHABLE: "Nothing to do.",
        Reason.SPEND_ALLOWED: "Nothing to do.",
        Reason.ALLOWED: "Nothing to do.",
        Reason.UP_TO_DATE: "Nothing to do.",
        Reason.REGISTERED: "Nothing to do.",
        Reason.REGISTRATION_FAILED: "Nothing to do: the row is written again; the message has the cause.",
        Reason.TAKEN_OVER: (
            "Nothing to do: a pod that carries this object's stamp, or that spec.adopt names, is taken over."
        ),
        Reason.ADOPTED: "Nothing to do.",
        Reason.GHOST_FOUND: "Nothing to do: the surplus of an ambiguous create is deleted.",
        Reason.CONFIRMING_GONE: "Nothing to do: the pod counts as gone after a 404 and two complete lists without it.",
        Reason.GONE: "Nothing to do: the pod is proven gone.",
        Reason.ALL_VERIFIED: "Nothing to do.",
        Reason.DISPOSABLE: (
            "Nothing to do; set remediation.artifacts to RequireVerified if results should hold the pod."
        ),
        Reason.RELEASED: "Nothing to do: the pod was given up by deletionPolicy and is no longer managed; it may bill.",
        Reason.RECONCILING: "Nothing to do: the message names what is under way.",
        Reason.NO_FAULT: "Nothing to do.",
        Reason.NO_SSH_WANTED: "Nothing to do: health.readiness is Mapping, so nobody logs in.",
        Reason.UNDONE: (
            "Nothing to do: the pod differed from what was asked and was deleted before any launch; the message "
            "says how."
        ),
        # The spec.
        Reason.SPEC_INCOMPLETE: "Add placement.candidates and container.image.",
        Reason.SPEC_INVALID: "Correct the field that the message names.",
        Reason.NOT_IMPLEMENTED_YET: "Remove the field that the message names, or use a version that builds it.",
        Reason.INVALID_REQUEST: (
            "Correct the spec as RunPod's own words in the message say; nothing is retried until it changes."
        ),
        Reason.UNKNOWN_GPU_TYPE: "Write one of the GPU names that the message suggests.",
        Reason.SECRET_NOT_FOUND: "Create the Secret that the message names in the object's namespace.",
        Reason.SECRET_KEY_MISSING: "Add the key that the message names to the Secret.",
        Reason.SECRET_INVALID: "Replace the value under the key that the message names; it cannot be used as it is.",
        Reason.VOLUME_NOT_FOUND: "Correct volume.network.volumeId, or make the volume in the account that pays.",
        Reason.IMAGE_ERROR: "Correct container.image, or name a registry credential in container.registry.",
        Reason.ADOPT_NOT_FOUND: "Correct spec.adopt.podId, or remove it and give placement.candidates.",
        Reason.ADOPT_FOREIGN: "Remove spec.adopt: the pod carries another object's stamp.",
        Reason.ADOPT_CONFLICT: "Remove spec.adopt from one of the two GpuPods that name this pod.",
        Reason.PAUSED: "Set spec.paused to false.",
        Reason.KEEP_RUNNING: "Set spec.keepRunning to false.",
        Reason.RESET_REQUIRED: "Set gpupod.dev/migrate to the pod id to apply the change, or take the change back.",
        Reason.REPLACE_REQUIRED: "Set gpupod.dev/migrate to the pod id to apply the change, or take the change back.",
        Reason.RESET_BLOCKED: "Remove what the message names as blocking, or set updateStrategy to OnDelete.",
        Reason.REPLACE_BLOCKED: "Remove what the message names as blocking, or set updateStrategy to OnDelete.",
        # Money and permission.
        Reason.NO_COMPUTE_AVAILABLE: "Set spend.allowPaid to true.",
        Reason.ACCOUNT_CEILING: "Wait for other pods to end, raise --max-hourly-account, or choose a cheaper pod.",
        Reason.NAMESPACE_CEILING: "Wait for other pods to end, raise --max-hourly-namespace, or choose a cheaper pod.",
        Reason.POD_CEILING: "Wait for other pods to end, or raise --max-pods.",
        Reason.CEILING_QUEUE: "Wait: an older GpuPod is first. Delete or stop that one if it is not wanted.",
        Reason.INSUFFICIENT_BALANCE: "Top up the RunPod account, or raise its spend limit.",
        Reason.PRICE_OVER_CAP: "Raise maxPricePerHour, or name cheaper candidates.",
        Reason.GPU_COUNT_MISMATCH: "Nothing to do: the pod is undone and another one is asked for.",
        Reason.SPEND_LIMIT: "Raise the operator's own ceiling that the message names, or end another pod.",
        Reason.TOTAL_EXHAUSTED: "Raise spend.maxTotal.",
        Reason.TTL_EXPIRED: "Raise spend.ttl, or set gpupod.dev/resume to the pod id.",
        Reason.APPROVAL_REQUIRED: "Set gpupod.dev/approve-terminate to the pod id.",
        Reason.APPROVAL_EXPIRED: "Remove gpupod.dev/approve-terminate and set it again.",
        Reason.MIGRATION_BUDGET_EXHAUSTED: "Raise remediation.maxMigrations, or wait until the window is over.",
        Reason.HOST_VOLUME_KEPT: "Set remediation.hostVolume to Discard, or save the volume's data yourself.",
        Reason.BREAKER_OPEN: "Wait for the canary, or set gpupod.dev/close-breaker to the present time.",
        Reason.UNLAUNCHED: "Give workload.command, or stop the pod: it bills without a workload.",
        # The provider.
        Reason.UNAUTHORIZED: "Put a valid RunPod API key into the Secret that the message names.",
        Reason.FORBIDDEN: "Give the key the scope that the message names.",
        Reason.ACCOUNT_MISMATCH: "Put back a key of the account under which the pod was created.",
        Reason.OBSERVATION_SUSPECT: (
            "Check that the key belongs to the recorded account; nothing is acted on until the list is explained."
        ),
        Reason.OBSERVATION_FAILED: (
            "Nothing to do: the list is read again at every tick; if it lasts, see RunPod's status page."
        ),
        Reason.PROVIDER_API_GONE: "Update the operator: the API version it speaks has ended.",
        Reason.THROTTLED: "Nothing to do: the call is repeated when the window opens.",
        Reason.PROVIDER_UNAVAILABLE: "Nothing to do: the call is repeated; if it lasts, see RunPod's status page.",
        Reason.NO_CAPACITY: "Add candidates, drop dataCenters, or wait: nothing bills meanwhile.",
        Reason.CAPACITY_WAIT_EXHAUSTED: "Change placement, or set gpupod.dev/reconcile-at to a new value.",
        Reason.CREATE_UNKNOWN: (
            "Nothing to do: complete lists are searched for the pod before anything is created again."
        ),
        Reason.DUPLICATE_PODS: "Terminate the pods that you do not want, or name the right one in spec.adopt.podId.",
        Reason.STOPPED_OUTSIDE: (
            "Set gpupod.dev/resume to the pod id, or set spec.state to Stopped and then to Running."
        ),
        Reason.STOPPED_BY_ORDER: (
            "Set gpupod.dev/resume to the pod id, or set spec.state to Stopped and then to Running."
        ),
        Reason.TERMINATED_OUTSIDE: (
            "Set gpupod.dev/resume to the pod id, or set spec.state to Stopped and then to Running."
        ),
        Reason.ENDED: "Set gpupod.dev/resume to the pod id, or set spec.state to Stopped and then to Running.",
        Reason.START_REFUSED: "Wait for a free GPU on that host, or set gpupod.dev/migrate to the pod id.",
        Reason.PROVIDER_STATUS_UNKNOWN: (
            "Nothing to do: RunPod shows a status this version does not know; the pod is kept and counted as billing."
        ),
        Reason.ACT_FAILED: "Nothing to do: the act is tried again; the message has RunPod's own words.",
        # Reachability.
        Reason.PORT_NOT_DECLARED: "Add 22/tcp to container.ports and set gpupod.dev/migrate to the pod id.",
        Reason.NEVER_PUBLISHED: "Nothing to do: the wedge clock runs.",
        Reason.PORT_LOST: "Nothing to do: the wedge clock runs.",
        Reason.STALE_PORT: "Nothing to do: the row is rendered again with the new port.",
        Reason.PRIVATE_MAPPING_ONLY: "Nothing to do: the wedge clock runs; prefer cloud Secure.",
        Reason.SLOW_PULL: "Nothing to do, or use a smaller image or raise health.startTimeout.",
        Reason.HOST_UNRESPONSIVE: "Nothing to do: the wedge clock runs.",
        Reason.SERVICE_NOT_READY: "Start sshd in the image; RunPod's own images do. The host is alive.",
        Reason.SSH_KEY_UNAVAILABLE: "Put a usable private key where the message says; until then nothing is concluded.",
        Reason.AUTH_DENIED: "Make the image take PUBLIC_KEY, or correct ssh.keySecretRef.",
        Reason.HOST_KEY: (
            "Make sure that it is your pod; set gpupod.dev/migrate to the pod id, or restart it for a new key."
        ),
        Reason.NAME_RESOLUTION: "Nothing to do: the endpoint is rendered again from live data.",
        Reason.PROVIDER_MISREPORT: (
            "Nothing to do: the pod answers under its pinned key although the API shows no mapping."
        ),
        Reason.HOST_FAULT: "Nothing to do: the pod moves to another host.",
        Reason.CODE_FAILURE: "Correct the workload: it fails in the same way on another host.",
        Reason.ZERO_GPU: "Nothing to do: the pod started without a GPU and is stopped.",
        Reason.START_TIMEOUT: "Nothing to do, or raise health.startTimeout if the image is large.",
        Reason.WEDGED: "Nothing to do: spec.remediation says what follows; the message names what stands in the way.",
        Reason.REPORT_ONLY: "Set remediation.action to Migrate, or set gpupod.dev/migrate to the pod id.",
        Reason.UNREACHABLE: "Nothing to do: the message names the cause.",
        # Cells and the gate.
        Reason.CELLS_UNVERIFIED: "Wait for the uploads, or set gpupod.dev/abandon-data to the pod id and a reason.",
        Reason.CELLS_UNKNOWN: (
            "Wait until the Hub and the pod can be read, or set gpupod.dev/abandon-data to the pod id and a reason."
        ),
        Reason.NO_CELLS_DECLARED: "Declare SweepCells, or set remediation.artifacts to Disposable.",
        Reason.CELLS_IN_FLIGHT: "Wait until upload.progressDeadline has passed, or set remediation.inFlight to Rerun.",
        Reason.CELLS_NOT_PRODUCED: "See why the workload ended without the cells that the message names.",
        Reason.DRAINING: "Nothing to do: the workload is ended so that the agent can finish.",
        Reason.TEARDOWN_BLOCKED: "Do one of the edits that the message names; the pod bills meanwhile.",
        Reason.DESTINATION_CONFLICT: "Give one of the two cells another destination.path.",
        Reason.POD_NOT_FOUND: "Create the GpuPod that podRef names, or correct the name in a new SweepCell.",
        Reason.POD_ENDED: "Set gpupod.dev/resume on the GpuPod to its pod id.",
        Reason.HUB_UNAUTHORIZED: "Put a valid Hub token into the Secret that tokenSecretRef names.",
        Reason.HUB_FORBIDDEN: "Give the token write access to the repository.",
        Reason.HUB_REPO_NOT_FOUND: "Create the repository or the revision, or give the token access to it.",
        Reason.HUB_UNAVAILABLE: "Nothing to do: the Hub is asked again.",
        Reason.QUOTA_EXCEEDED: "Free or buy storage on the Hub; nothing is deleted by the operator.",
        Reason.RATE_LIMITED: "Nothing to do: the commit is made when the Hub's window opens.",
        Reason.MISSING: "Nothing to do: the missing files are uploaded again while their pod lives.",
        Reason.MISSING_NO_SOURCE: "Restore the files on the Hub, or delete the cell and run it again.",
        Reason.MISMATCH: "Move what is at the destination out of the way, or give the cell another path.",
        Reason.PARTIAL: "Nothing to do: the missing files are uploaded while their pod lives.",
        Reason.AGENT_UNAVAILABLE: "Add Python 3.10 or newer to the image; the message says what failed.",
        Reason.PYTHON_TOO_OLD: "Add Python 3.10 or newer (or python3-venv) to the image.",
        Reason.AGENT_FAILED: "Nothing to do: the agent is started again; the message has its error.",
        Reason.SYMLINKED_DIRECTORY: "Write into a real directory: a symlinked one is not uploaded.",
        Reason.PATH_MISSING: "Correct the artifact's path in a new SweepCell, or make the producer write there.",
        Reason.ARTIFACT_REFUSED: "Correct what the message names: the uploader cannot take it.",
        Reason.BAD_ARTIFACTS: "Correct spec.source in a new SweepCell: the files there are not what it declares.",
        Reason.STALE_DONE_FILE: "Make the producer write the done file last; an older one does not count.",
        Reason.UPLOAD_FAILED: "Nothing to do: the upload is tried again; the message has its error.",
        Reason.UPLOADING: "Nothing to do.",
        Reason.UPLOADED: "Nothing to do.",
        Reason.VERIFICATION_PENDING: "Nothing to do: the Hub is listed at the next pass.",
        Reason.VERIFIED: "Nothing to do.",
        Reason.PRODUCED: "Nothing to do.",
        Reason.PRODUCING: "Nothing to do.",
        Reason.PENDING: "Nothing to do: the pod has not begun with this cell.",
        Reason.LOST: "Nothing to do: the next attempt runs the cell again.",
        Reason.DATA_LOST: "Nothing to do: the next attempt runs again what the message names.",
        Reason.ABANDONED: "Nothing to do: a person gave this data up.",
        Reason.ACCEPTED: "Nothing to do.",
        # Workload and registration.
        Reason.NOT_STARTED: "Nothing to do: the workload is started when the pod is Ready.",
        Reason.NO_WORKLOAD: "Nothing to do: spec.workload.command is empty.",
        Reason.LAUNCHING: "Nothing to do: the launch is being confirmed in a second session.",
        Reason.RUNNING: "Nothing to do.",
        Reason.SUCCEEDED: "Nothing to do.",
        Reason.FAILED: "See the captured logs that status.history names; the pod stays up for diagnosis.ttl.",
        Reason.START_FAILED: (
            "Correct workload.check or workload.command; the message has the exit code and the end of its output."
        ),
        Reason.POD_NOT_RUNNING: "Nothing to do: the pod ended before the workload did.",
        Reason.NOT_READY: "Nothing to do: the pod is not reachable yet.",
        Reason.WORKLOAD_UNKNOWN: "Nothing to do: the pod cannot be asked; nothing is taken for dead.",
        Reason.STALLED: "Look at the workload: every signal has been quiet for workload.stallAfter.",
        Reason.INTERNAL_ERROR: "Report it with the log line that the message names; the object is tried again.",
        Reason.NO_POD: "Nothing to do: there is no pod.",
        Reason.NO_ENDPOINT: "Nothing to do: the row is rendered when the pod has an endpoint.",
        Reason.PUBLISH_DISABLED: "Set podsConf.publish to true to have a row.",
        Reason.NAME_CONFLICT: "Give podsConf.name another value in one of the two objects.",
        Reason.OVERRIDE_INCOMPLETE: "Give both host and port in podsConf.endpointOverride.",
        Reason.OVERRIDE_DIFFERS: "Remove podsConf.endpointOverride to return to live values.",
        Reason.WRITE_FAILED: "Nothing to do: the ConfigMap is written again; the message has the API server's words.",
    }
)
