"""May this object be acted on at all? Account, adopted pods, fields that are not built yet."""

from __future__ import annotations

from gpupod_operator.api.gpupod_status import AccountStatus, AttemptIntent
from gpupod_operator.api.reasons import Reason
from gpupod_operator.api.supported import unsupported
from gpupod_operator.core.gpupod.scope import Ask, Scope, Step, Wait
from gpupod_operator.core.known import Known
from gpupod_operator.core.plan import Need
from gpupod_operator.core.provider import AccountIdentity


def check_supported(scope: Scope) -> Step | None:
    """A restricting field without behaviour stops every act: it must never fail open on money or data."""
    fields = unsupported(scope.spec)
    restricting = [f.path for f in fields if f.restricting]
    if restricting:
        names = ", ".join(restricting)
        scope.condition("Supported", False, Reason.NOT_IMPLEMENTED_YET, f"{names} is not built yet")
        return Wait(
            Reason.NOT_IMPLEMENTED_YET,
            f"{names} restricts what may be done and this version does not build it yet: nothing is acted on while "
            f"it is set. Remove it to go on",
            stalled=True,
        )
    if fields:
        names = ", ".join(f.path for f in fields)
        scope.condition("Supported", False, Reason.NOT_IMPLEMENTED_YET, f"{names} is not built yet and has no effect")
    else:
        scope.condition("Supported", True, Reason.SUPPORTED, "every field that is set is built")
    return None


def check_account(scope: Scope) -> Step | None:
    """The key works and belongs to the account under which the pod was made."""
    account = scope.facts.account
    if account is None:
        return Ask(frozenset({Need.ACCOUNT}))
    if not isinstance(account, Known):
        secrets = scope.facts.secrets
        reason = Reason.UNAUTHORIZED
        if isinstance(secrets, Known) and secrets.value.reason is not None:
            reason = secrets.value.reason
        elif not account.why.startswith("401"):
            reason = Reason.OBSERVATION_FAILED
        scope.condition("ProviderObserved", False, reason, account.why)
        return Wait(reason, account.why, stalled=reason is not Reason.OBSERVATION_FAILED)
    recorded = scope.status.account
    identity = account.value
    if recorded is not None and _another(recorded, identity) and bound(scope):
        scope.condition("ProviderObserved", False, Reason.ACCOUNT_MISMATCH, f"the key belongs to account {identity.id}")
        return Wait(
            Reason.ACCOUNT_MISMATCH,
            f"pod {scope.pod_id or '(not settled yet)'} was created under account {recorded.id}, but the key in "
            f"spec.account belongs to {identity.id}: frozen, the pod bills {scope.price}. Put back a key of the "
            f"recorded account",
            stalled=True,
        )
    if (
        recorded is None
        or not bound(scope)
        or recorded.id != identity.id
        or recorded.key_fingerprint != identity.key_fingerprint
    ):
        scope.put(account=AccountStatus(id=identity.id, key_fingerprint=identity.key_fingerprint))
    return None


def _another(recorded: AccountStatus, identity: AccountIdentity) -> bool:
    """Another account than the recorded one. A key that was later given `account:read` is still the same key."""
    if recorded.id is None or recorded.id == identity.id:
        return False
    stood_in = recorded.id == recorded.key_fingerprint
    return not (stood_in and recorded.key_fingerprint == identity.key_fingerprint)


def bound(scope: Scope) -> bool:
    """A pod, or a create whose outcome is open, ties the object to the account that is recorded."""
    attempt = scope.status.attempt
    return attempt is not None and (attempt.pod_id is not None or attempt.intent is AttemptIntent.CREATE)
