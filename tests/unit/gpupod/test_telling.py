"""Events are for what changes: not for another reason of what stays as it is."""

from datetime import UTC, datetime

import pytest

from gpupod_operator.api.conditions import Condition
from gpupod_operator.api.gpupod_status import GpuPodStatus
from gpupod_operator.core.gpupod.telling import transitions

AT = datetime(2026, 3, 1, tzinfo=UTC)


def status(*conditions):
    made = [Condition(type=t, status=s, reason=r, message=r, last_transition_time=AT) for t, s, r in conditions]
    return GpuPodStatus(conditions=tuple(made))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (("Wedged", "False", "NoPod"), ("Wedged", "False", "NoFault")),
        (("Registered", "False", "NoPod"), ("Registered", "False", "NoEndpoint")),
        (("Provisioned", "True", "Provisioning"), ("Provisioned", "True", "Provisioned")),
        (("Reachable", "True", "Reachable"), ("Reachable", "True", "Reachable")),
        (("WorkloadRunning", "False", "NoPod"), ("WorkloadRunning", "False", "NoWorkload")),
    ],
)
def test_what_stays_as_it_is_is_not_told(before, after):
    assert transitions(status(before), status(after)) == ()


def test_what_a_person_wrote_is_not_told_to_him():
    assert transitions(status(), status(("ArtifactsSafe", "True", "Disposable"))) == ()


@pytest.mark.parametrize(
    ("before", "after", "warning"),
    [
        (("Wedged", "False", "NoFault"), ("Wedged", "True", "PortLost"), True),
        (("Wedged", "True", "PortLost"), ("Wedged", "False", "Reachable"), False),
        (("Wedged", "True", "PortLost"), ("Wedged", "True", "HostUnresponsive"), True),
        (("Registered", "True", "Registered"), ("Registered", "False", "NoEndpoint"), False),
        (("Registered", "False", "NoEndpoint"), ("Registered", "False", "NameConflict"), False),
        (("Registered", "True", "Registered"), ("Registered", "True", "OverrideDiffers"), False),
        (("Provisioned", "True", "Provisioned"), ("Provisioned", "False", "HostFault"), True),
        (("Provisioned", "False", "NoPod"), ("Provisioned", "False", "Creating"), False),
    ],
)
def test_what_changes_is_told_once(before, after, warning):
    (told,) = transitions(status(before), status(after))
    assert (told.reason, told.warning) == (after[2], warning)
