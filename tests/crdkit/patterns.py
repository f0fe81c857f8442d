"""For every pattern of the schemas: what it accepts and what it refuses, in examples that somebody could write."""

import re
from typing import NamedTuple


class Samples(NamedTuple):
    """`accepted[0]` is also the value that generated specimens carry."""

    accepted: tuple[str, ...]
    refused: tuple[str, ...]


_SEGMENT = r"[^/.[:cntrl:]][^/[:cntrl:]]*|\.[^/.[:cntrl:]][^/[:cntrl:]]*|\.\.[^/[:cntrl:]]+"
_MOUNT = r"[^/.[:space:]:][^/[:space:]:]*|\.[^/.[:space:]:][^/[:space:]:]*|\.\.[^/[:space:]:]+"
_PORT = r"[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]"

PATTERNS: dict[str, Samples] = {
    r"^([0-9]{1,6}(s|m|h))+$": Samples(("90m", "1h30m", "999999h"), ("2 days", "1.5h", "15", "-5m", "1000000h", "")),
    r"^\d{1,7}(\.\d{1,4})?$": Samples(
        ("2.49", "0", "9999999.9999"), ("-1", "2.49999", "$2", "1e3", ".5", "10000000", "")
    ),
    r"^\d{1,2}\.\d{1,2}$": Samples(("12.8", "11.4"), ("12", "12.8.1", "cuda12")),
    r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$": Samples(("runpod-key", "a.b"), ("RunPod", "-a", "a-", "a/b")),
    r"^[-._a-zA-Z0-9]+$": Samples(("apiKey", "ssh-privatekey"), ("api key", "a/b")),
    r"^[A-Za-z0-9]([A-Za-z0-9 ._+/()-]*[A-Za-z0-9)])?$": Samples(
        ("H100 SXM", "NVIDIA H100 80GB HBM3", "NVIDIA RTX 6000 Ada Generation", "RTX 4090"),
        (" H100", "H100\n", "H1,A1"),
    ),
    r"^[A-Z0-9-]+$": Samples(("EU-RO-1", "US-KS-2"), ("eu-ro-1", "EU RO 1")),
    r"^[A-Za-z0-9][A-Za-z0-9._:/@+-]*$": Samples(
        ("runpod/pytorch:2.8.0", "ghcr.io/me/image@sha256:0123456789abcdef"), ("my image", "--privileged", "im;age")
    ),
    r"^[A-Za-z_][A-Za-z0-9_]*$": Samples(("HF_HOME", "_x"), ("1A", "A-B", "A=B")),
    r"^[A-Za-z0-9._-]+$": Samples(("hf-token", "a.b_c"), ("two words", "a/b")),
    rf"^({_PORT})/(tcp|http)$": Samples(
        ("22/tcp", "8888/http", "65535/tcp"), ("22", "53/udp", "0/tcp", "65536/tcp", "022/tcp")
    ),
    r"^[A-Za-z0-9_-]+$": Samples(("abc123xyz", "x_1-2"), ("a b", "a/b", "a.b")),
    rf"^(/({_MOUNT}))+$": Samples(
        ("/workspace", "/data/.hidden"), ("workspace", "/a/../b", "/", "/a/", "/a:b", "/a b")
    ),
    rf"^(/({_SEGMENT}))+$": Samples(
        ("/workspace/out/DONE", "/workspace/.cache/a b", "/x/..y"),
        ("out/DONE", "/a/../b", "/a/.", "/a//b", "/", "/a\nb"),
    ),
    rf"^({_SEGMENT})(/({_SEGMENT}))*$": Samples(
        ("eval/results.json", "**/*.safetensors", ".hidden"), ("/abs", "../up", "a/../b", "a//b", "a/", "./a")
    ),
    r"^[A-Za-z0-9._][A-Za-z0-9._-]*$": Samples(("gpu-1", "_x"), ("two words", "-oProxyCommand=x", "a/b")),
    r"^[A-Za-z0-9:][A-Za-z0-9.:_-]*$": Samples(
        ("203.0.113.7", "pod.example.org", "::1"), ("-oProxyCommand=x", "a b", "a/b")
    ),
    r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$": Samples(("lr-sweep", "a"), ("-a", "a b", "_cell", "a/")),
    r"^[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*$": Samples(
        ("me/results", "org.1/data_set-2"), ("results", "a/b/c", "/b", "me/", "https://huggingface.co/me/results")
    ),
    r"^[A-Za-z0-9]([A-Za-z0-9._/-]*[A-Za-z0-9])?$": Samples(("main", "refs/pr/1", "v1.0"), ("-x", "a b", "main/")),
    r"^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$": Samples(("Ready",), ("Not Ready", "-a")),
    r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$": Samples(("NoCapacity",), ("no capacity", "1a")),
}


def matches(pattern: str, value: str) -> bool:
    """Whether the pattern accepts the value, by Python's engine (which lacks the API server's POSIX classes)."""
    translated = pattern.replace("[:cntrl:]", r"\x00-\x1f\x7f").replace("[:space:]", r"\s")
    return re.search(translated.removesuffix("$") + r"\Z", value) is not None
