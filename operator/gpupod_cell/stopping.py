"""The one thing the agent asks of RunPod: to stop the pod it runs on, with the key that RunPod gave this pod."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.parse
import urllib.request
from typing import Any

from gpupod_cell import FORMAT

SECONDS = 30
USER_AGENT = f"gpupod-cell/{FORMAT}"
"""RunPod's front refuses Python's default."""
SHOWN = 200


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would take the key to somebody else."""

    def redirect_request(self, *_: Any) -> None:
        return None


def stop_pod(endpoint: str, pod_id: str, key: str) -> str | None:
    """Order the stop. None: taken; else why not, without the key."""
    url = f"{endpoint.rstrip('/')}/v2/pods/{urllib.parse.quote(pod_id, safe='')}/action"
    if urllib.parse.urlsplit(url).scheme not in ("http", "https"):
        return f"{endpoint} is no address of RunPod's API"
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json", "User-Agent": USER_AGENT}
    request = urllib.request.Request(url, json.dumps({"action": "stop"}).encode(), headers, method="POST")  # noqa: S310
    try:
        with urllib.request.build_opener(_NoRedirect).open(request, timeout=SECONDS) as answer:
            answer.read(1)
    except urllib.error.HTTPError as refusal:
        return f"RunPod answered {refusal.code}: {_plain(refusal)}".replace(key, "***")
    except (OSError, http.client.HTTPException, ValueError) as error:
        return f"RunPod could not be asked: {type(error).__name__}: {error}"[:SHOWN].replace(key, "***")
    return None


def _plain(refusal: urllib.error.HTTPError) -> str:
    try:
        return " ".join(refusal.read(4096).decode(errors="replace").split())[:SHOWN]
    except (OSError, http.client.HTTPException):
        return str(refusal.reason)
