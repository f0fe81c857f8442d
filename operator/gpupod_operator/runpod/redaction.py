"""Takes secrets out of the vendor's words before they become an error, a condition or a log line."""

from __future__ import annotations

import re
from collections.abc import Iterable

MASK = "***"
# Shorter values ("1", "true", "bf16") are no secrets, and masking them would garble the vendor's sentence.
SHORTEST_SECRET = 8
_TOKENS = re.compile(r"\b(?:rpa_|hf_|ghp_|sk-)[A-Za-z0-9_-]{6,}|(?<=Bearer )\S+")


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """The text without the given values (of at least 8 characters) and without anything shaped like a token."""
    # Longest first: a value may contain another one.
    for secret in sorted({s for s in secrets if len(s) >= SHORTEST_SECRET}, key=len, reverse=True):
        text = text.replace(secret, MASK)
    return _TOKENS.sub(MASK, text)
