"""The kind is not in the cluster: what bills all the same, for the last lines of an operator that cannot work."""

from __future__ import annotations

from gpupod_operator.core.provider import ProviderPod
from gpupod_operator.ports import ProviderError
from gpupod_operator.runpod.accounts import Accounts
from gpupod_operator.runpod.keys import KeySource
from gpupod_operator.runtime.clock import SystemClock
from gpupod_operator.runtime.settings import Settings


async def left_behind(settings: Settings, instance: str) -> list[str]:
    """A sentence per pod of this instance in the account of the operator's own key; or one that it cannot be known."""
    path = settings.runpod_key_file
    if path is None or not path.exists():
        return []
    accounts = Accounts(SystemClock(), base_url=settings.runpod_api)
    try:
        account = await accounts.open(KeySource.from_file(path))
        pods = await account.provider.list_pods()
    except ProviderError as error:
        return [f"whether pods of this operator bill cannot be known: {error.detail}"]
    finally:
        await accounts.close()
    return [_sentence(pod) for pod in pods if pod.live and pod.stamp is not None and pod.stamp.instance == instance]


def _sentence(pod: ProviderPod) -> str:
    price = f"${pod.cost_per_hour:f}/h" if pod.cost_per_hour is not None else "at an unknown price"
    return (
        f"pod {pod.id} ({pod.name}) of this operator is {pod.raw_state} and bills {price}, and no object holds it: "
        f"terminate it in RunPod's console once you know that nobody needs it"
    )
