"""The vendor's sentences, as far as only they tell two refusals of one status apart. All matched in any case.

Collected from the service's answers and from other tools' trackers; RunPod documents none of them.
"""

from __future__ import annotations

import re

_PREFIXES = re.compile(r"^(?:(?:create|start|stop|resume) pod: )+", re.IGNORECASE)

_CAPACITY = (
    "no longer any instances available",
    "no instances currently available",
    "does not have the resources to deploy your pod",
    "resourcesunavailable",
    "insufficient resources",
    "insufficient capacity",
    "out of stock",
    "sold out",
    "please refresh and try again",
    "try a different machine",
)
_HOST_FULL = ("not enough free gpus on the host machine", "host is down", "host machine is down")
# Whole words: "load balancer" and "credentials" are about something else.
_BALANCE = re.compile(
    r"\bbalance\b|\bspend(?:ing)?[ -]?(?:limit|rate|cap)\b|\bcredits\b|\binsufficient funds\b", re.IGNORECASE
)
_CLOUDFLARE_BAN = re.compile(r"error code:?\s*1010|\berror 1010\b", re.IGNORECASE)


def without_prefix(detail: str) -> str:
    """The sentence without the name of the operation that some deployments put in front of it."""
    return _PREFIXES.sub("", detail.strip())


def means_no_capacity(text: str) -> bool:
    """No host takes such a pod now: another candidate, or later."""
    return _any(_CAPACITY, text)


def means_host_full(text: str) -> bool:
    """The stopped pod's own host has no room for it (or is down)."""
    return _any(_HOST_FULL, text)


def means_balance(text: str) -> bool:
    """Money, or the account's hourly cap: no create of this account can succeed until a person acts."""
    return _BALANCE.search(text) is not None


def means_ban(text: str) -> bool:
    """Cloudflare's 1010: it dislikes the client. No verdict on the key, the pod, or anything behind it."""
    return _CLOUDFLARE_BAN.search(text) is not None


def _any(markers: tuple[str, ...], text: str) -> bool:
    lowered = text.lower()
    return any(marker in lowered for marker in markers)
