"""`.gitignore` and `.gitattributes`, as far as the Hub applies them to an upload."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

# The Hub puts this file into every new dataset repository; the patterns decide what is stored as LFS.
DEFAULT_GITATTRIBUTES = "".join(
    f"{pattern} filter=lfs diff=lfs merge=lfs -text\n"
    for pattern in (
        *("*.7z", "*.arrow", "*.avro", "*.bin", "*.bz2", "*.ckpt", "*.ftz", "*.gz", "*.h5", "*.joblib"),
        *("*.lfs.*", "*.lz4", "*.mds", "*.mlmodel", "*.model", "*.msgpack", "*.npy", "*.npz", "*.onnx", "*.ot"),
        *("*.parquet", "*.pb", "*.pickle", "*.pkl", "*.pt", "*.pth", "*.rar", "*.safetensors", "saved_model/**/*"),
        *("*.tar.*", "*.tar", "*.tflite", "*.tgz", "*.wasm", "*.xz", "*.zip", "*.zst", "*tfevents*"),
        *("*.pcm", "*.sam", "*.raw", "*.aac", "*.flac", "*.mp3", "*.ogg", "*.wav"),
        *("*.bmp", "*.gif", "*.png", "*.tiff", "*.jpg", "*.jpeg", "*.webp", "*.mp4", "*.webm"),
    )
)


def is_ignored(path: str, gitignore: str) -> bool:
    """Whether git would ignore `path`: the last matching rule wins, an ignored directory takes all below it."""
    parents = [path[: match.start()] for match in re.finditer("/", path)]
    if any(_ignored_by_rules(parent, gitignore, directory=True) for parent in parents):
        return True
    return _ignored_by_rules(path, gitignore, directory=False)


def is_lfs(path: str, gitattributes: str) -> bool:
    """Whether `.gitattributes` sends `path` through the LFS filter; the last matching line that speaks of it wins."""
    answer = False
    for line in gitattributes.splitlines():
        pattern, *attributes = line.split() or [""]
        if not pattern or pattern.startswith("#"):
            continue
        verdicts = [attribute for attribute in attributes if attribute.lstrip("-!").startswith("filter")]
        if verdicts and _matches(pattern, path):
            answer = verdicts[-1] == "filter=lfs"
    return answer


def _ignored_by_rules(path: str, gitignore: str, *, directory: bool) -> bool:
    ignored = False
    for rule in _rules(gitignore):
        negated = rule.startswith("!")
        pattern = rule.removeprefix("!")
        if pattern.endswith("/") and not directory:
            continue
        if _matches(pattern.rstrip("/"), path):
            ignored = not negated
    return ignored


def _rules(gitignore: str) -> Iterable[str]:
    for line in gitignore.splitlines():
        rule = line.rstrip()
        if rule and not rule.startswith("#"):
            yield rule


def _matches(pattern: str, path: str) -> bool:
    # A pattern without an inner slash holds at every depth; any other is anchored at the root.
    if "/" not in pattern:
        return _regex(pattern).fullmatch(path.rpartition("/")[2]) is not None
    return _regex(pattern.lstrip("/")).fullmatch(path) is not None


@lru_cache(maxsize=1024)
def _regex(pattern: str) -> re.Pattern[str]:
    parts: list[str] = []
    index = 0
    while index < len(pattern):
        rest = pattern[index:]
        if rest.startswith("**/"):
            parts.append("(?:.*/)?")
            index += 3
        elif rest.startswith("**"):
            parts.append(".*")
            index += 2
        elif rest[0] == "*":
            parts.append("[^/]*")
            index += 1
        elif rest[0] == "?":
            parts.append("[^/]")
            index += 1
        elif rest[0] == "[" and (closing := rest.find("]", 2)) > 0:
            body = rest[1:closing].replace("\\", "\\\\")
            parts.append("[" + ("^" + body[1:] if body[0] in "!^" else body) + "]")
            index += closing + 1
        elif rest[0] == "\\" and len(rest) > 1:
            parts.append(re.escape(rest[1]))
            index += 2
        else:
            parts.append(re.escape(rest[0]))
            index += 1
    return re.compile("".join(parts), re.DOTALL)
