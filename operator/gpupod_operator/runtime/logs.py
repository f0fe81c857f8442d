"""One structured line per decision. Messages and fields never hold a secret; a filter is the second fence."""

from __future__ import annotations

import json
import logging
import re
from datetime import UTC, datetime

FIELDS = ("object", "attempt", "pod", "request", "act", "phase", "reason", "cell")
_TOKEN = re.compile(r"(hf_[A-Za-z0-9]{8,}|rpa_[A-Za-z0-9]{8,}|Bearer\s+\S+|-----BEGIN [A-Z ]*PRIVATE KEY-----)")


def redact(text: str) -> str:
    """Anything that looks like a token becomes `[redacted]`."""
    return _TOKEN.sub("[redacted]", text)


class JsonFormatter(logging.Formatter):
    """`{"ts","level","logger","msg",...}` with the fields above when a record carries them."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "ts": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "msg": redact(record.getMessage()),
        }
        line.update({f: getattr(record, f) for f in FIELDS if getattr(record, f, None) is not None})
        if record.exc_info:
            line["exception"] = redact(self.formatException(record.exc_info))
        return json.dumps(line, ensure_ascii=False, default=str)


class PlainFormatter(logging.Formatter):
    """For people: time, level, object, message."""

    def format(self, record: logging.LogRecord) -> str:
        who = getattr(record, "object", None)
        stamp = datetime.fromtimestamp(record.created, UTC).strftime("%H:%M:%S")
        text = f"{stamp} {record.levelname[0]} {f'{who}: ' if who else ''}{record.getMessage()}"
        if record.exc_info:
            text += "\n" + self.formatException(record.exc_info)
        return redact(text)


def set_up_logging(fmt: str, level: str) -> None:
    """One handler on stderr for everything, kopf included."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter() if fmt == "json" else PlainFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    # kopf logs every event of every object at INFO and asyncssh every connection: not decisions
    for chatty in ("kopf.objects", "kopf.activities", "kopf._core", "kopf._cogs", "asyncssh", "aiohttp.access"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
