"""Logs of a pod are kept in a ConfigMap; tokens in them are not."""

from __future__ import annotations

import re
from collections.abc import Iterable

_SECRETS = (
    # A real one has 34 characters; `hf_transfer` and `hf_hub_download` stand in many tracebacks and stay.
    re.compile(r"\b(?:hf|rpa|rps)_[A-Za-z0-9]{10,}"),
    re.compile(r"\b(?:sk|ghp|gho|ghs|github_pat|xox[abp])[_-][A-Za-z0-9_-]{16,}"),
    re.compile(r"\bapi_org_[A-Za-z0-9]{8,}"),
    re.compile(r"\bAKIA[0-9A-Z]{16}\b"),
    re.compile(r"(?i)\b(?:bearer|basic)\s+[A-Za-z0-9+/=._~-]{8,}"),
    re.compile(r"(?i)(?<=://)[^/\s:@]+:[^/\s@]+(?=@)"),
    re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL),
)
_NAMED = re.compile(
    r"""(?i)(["']?\b[\w.-]*(?:token|secret|password|passwd|api[_-]?key|wandb_key)\b["']?\s*[=:]\s*)(?!\d+\b)("[^"\n]*"|'[^'\n]*'|\S+)"""
)
_REMOVED = "(removed)"
SHORTEST = 8


def redact(text: str) -> str:
    """The text with everything that looks like a credential replaced by `(removed)`."""
    for pattern in _SECRETS:
        text = pattern.sub(_REMOVED, text)
    return _NAMED.sub(rf"\1{_REMOVED}", text)


def without(text: str, values: Iterable[str]) -> str:
    """The text without these very values; shorter than `SHORTEST` they are words and would tear every log apart."""
    for value in sorted((v.strip() for v in values if len(v.strip()) >= SHORTEST), key=len, reverse=True):
        text = text.replace(value, _REMOVED)
    return text
