"""Is this the pod we mean? Account, exact pod id and ownership, all against live reads of this pass."""

from __future__ import annotations

from gpupod_operator.api.reasons import Reason
from gpupod_operator.core.gate.question import GateNeed, GateQuestion, GateReason
from gpupod_operator.core.gate.verdict import NeedsFacts, Undecided
from gpupod_operator.core.known import Unknown
from gpupod_operator.core.ownership import Foreign, claim
from gpupod_operator.core.provider import ProviderPod


def live_pod(q: GateQuestion) -> ProviderPod | NeedsFacts | Undecided:
    """The live pod that the act would hit, once nothing speaks against it being ours."""
    missing = frozenset(need for need, fact in ((GateNeed.ACCOUNT, q.account), (GateNeed.POD, q.pod)) if fact is None)
    if missing or q.account is None or q.pod is None:
        return NeedsFacts(missing)
    if isinstance(q.account, Unknown):
        return Undecided(f"the account behind the key is not known: {q.account.why}", Reason.OBSERVATION_FAILED)
    recorded = q.status.account.id if q.status.account is not None else None
    if recorded is None:
        return Undecided(f"no account is recorded for pod {q.pod_id}", Reason.ACCOUNT_MISMATCH)
    if recorded != q.account.value.id:
        return Undecided(
            f"the key belongs to account {q.account.value.id}, pod {q.pod_id} was recorded under {recorded}; "
            "set spec.account.secretRef to a key of that account",
            Reason.ACCOUNT_MISMATCH,
        )
    if isinstance(q.pod, Unknown):
        return Undecided(f"pod {q.pod_id} cannot be read: {q.pod.why}", Reason.OBSERVATION_FAILED)
    pod = q.pod.value
    if pod.id != q.pod_id:
        return Undecided(f"asked for pod {q.pod_id}, the provider answered with {pod.id}", Reason.OBSERVATION_SUSPECT)
    attempt_pod = q.status.attempt.pod_id if q.status.attempt is not None else None
    if q.reason is not GateReason.UNDO and attempt_pod != q.pod_id:
        # What is known about cells is bound to the recorded pod, so it says nothing about any other.
        return Undecided(f"pod {q.pod_id} is not the recorded pod ({attempt_pod})", Reason.OBSERVATION_SUSPECT)
    adopted = q.spec.adopt.pod_id if q.spec.adopt is not None else None
    owner = claim(pod, instance=q.instance, uid=q.uid, adopt_id=adopted)
    if isinstance(owner, Foreign):
        return Undecided(owner.why, Reason.ADOPT_FOREIGN)
    return pod
