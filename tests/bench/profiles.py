"""Where time and memory go: the profiles of the operator, by package and by function."""

import pstats
import re
import tracemalloc
from collections import Counter
from pathlib import Path

TOP = 35


def summarize(workdir: Path, kind: str) -> str:
    """The profile of the first operator process, which saw the launch. Its times are longer than without a profiler."""
    path = workdir / f"operator-1.{kind}"
    if not path.exists():
        return f"no profile: the operator did not end in order ({path} is missing)"
    return _cpu(path) if kind == "cpu" else _memory(path)


def _cpu(path: Path) -> str:
    stats: dict[tuple[str, int, str], tuple[int, int, float, float, object]] = pstats.Stats(str(path)).stats  # type: ignore[attr-defined]
    own: Counter[str] = Counter()
    idle = sum(numbers[2] for (_, _, name), numbers in stats.items() if "select.epoll" in name)
    for (file, _, name), (_, _, seconds, _, _) in stats.items():
        if "select.epoll" in name:
            continue
        own[_package(file, name)] += seconds  # type: ignore[assignment]
    total = sum(own.values())
    lines = ["", f"own time by package ({total:.1f} s; {idle:.1f} s were waited)"]
    lines += [f"{seconds:8.2f} s {100 * seconds / total:5.1f} %  {name}" for name, seconds in own.most_common(20)]
    for title, index in (("own time", 2), ("time with callees", 3)):
        lines += ["", f"functions by {title}"]
        ordered = sorted(stats.items(), key=lambda item: -item[1][index])  # type: ignore[operator]
        lines += [f"{s[index]:8.2f} s {s[1]:>9} x  {_where(*where)}" for where, s in ordered[:TOP]]
    return "\n".join(lines)


def _memory(path: Path) -> str:
    snapshot = tracemalloc.Snapshot.load(str(path))
    sizes: Counter[str] = Counter()
    for item in snapshot.statistics("filename"):
        sizes[_package(item.traceback[0].filename, "")] += item.size
    total = sum(sizes.values())
    lines = ["", f"Python memory at the end by package ({total / 1e6:.1f} MB)"]
    lines += [f"{size / 1e6:8.2f} MB  {name}" for name, size in sizes.most_common(20)]
    lines += ["", "by line"]
    for item in snapshot.statistics("lineno")[:TOP]:
        frame = item.traceback[0]
        lines.append(f"{item.size / 1e6:8.2f} MB {item.count:>8} x  {_short(frame.filename)}:{frame.lineno}")
    return "\n".join(lines)


def _package(file: str, name: str) -> str:
    if file == "~":
        return f"built-in {name.split('.', maxsplit=1)[0].strip('<>')}" if "." in name else "built-in"
    for pattern in (r"site-packages/([^/]+)", r"(gpupod_\w+/\w+)", r"python3[^/]*/([^/]+)"):
        found = re.search(pattern, file)
        if found:
            return found[1]
    return file


def _short(file: str) -> str:
    return re.sub(r"^.*?(site-packages|python3\.\d+|operator)/", "", file)


def _where(file: str, line: int, name: str) -> str:
    return name if file == "~" else f"{_short(file)}:{line} {name}"
