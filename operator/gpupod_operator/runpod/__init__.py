"""RunPod's REST v2 as the operator sees it: a thin client, one quota governor and one observer per account."""

from gpupod_operator.runpod.accounts import Account, Accounts
from gpupod_operator.runpod.client import Balance, RunPodClient
from gpupod_operator.runpod.errors import IncompleteAnswer
from gpupod_operator.runpod.governor import Governor
from gpupod_operator.runpod.keys import ApiKey, KeySource
from gpupod_operator.runpod.observer import AccountObserver
from gpupod_operator.runpod.requests import RUNPOD, runpod_session

__all__ = [
    "RUNPOD",
    "Account",
    "AccountObserver",
    "Accounts",
    "ApiKey",
    "Balance",
    "Governor",
    "IncompleteAnswer",
    "KeySource",
    "RunPodClient",
    "runpod_session",
]
