"""The globs of an artifact's `include`.

`*` and `?` stay inside one path segment, `**` spans any number of them. A pattern without a slash is matched against
the file's name at any depth, as in .gitignore.
"""

from __future__ import annotations

import re
from functools import lru_cache


def matches(path: str, pattern: str) -> bool:
    """Whether the file at `path` (relative, with `/`) is meant by `pattern`."""
    if "/" not in pattern and "**" not in pattern:
        path = path.rpartition("/")[2]
    return _compiled(pattern).fullmatch(path) is not None


@lru_cache(maxsize=512)
def _compiled(pattern: str) -> re.Pattern[str]:
    out, at = [], 0
    pattern = pattern.lstrip("/")
    while at < len(pattern):
        if pattern.startswith("**/", at):
            out.append("(?:[^/]+/)*")
            at += 3
        elif pattern.startswith("**", at):
            out.append(".*")
            at += 2
        elif pattern[at] == "*":
            out.append("[^/]*")
            at += 1
        elif pattern[at] == "?":
            out.append("[^/]")
            at += 1
        elif pattern[at] == "[" and (end := pattern.find("]", at + 2)) > 0:
            body = pattern[at + 1 : end].replace("\\", "\\\\")
            out.append("[" + ("^" + body[1:] if body[0] in "!^" else body) + "]")
            at = end + 1
        else:
            out.append(re.escape(pattern[at]))
            at += 1
    return re.compile("".join(out), re.DOTALL)
