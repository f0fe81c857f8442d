"""A write at rest is found; a world on its way may write."""

from dataclasses import replace

import pytest

from worldkit.processes import processes_show
from worldkit.rest import Still, settled, written

REST = Still(settled=True, wishes={"u1": 1}, world={"p1": True}, versions={"GpuPod one": "7"}, asked=3)


@pytest.mark.parametrize(
    ("after", "told"),
    [
        (REST, 0),
        (replace(REST, asked=4), 1),
        (replace(REST, versions={"GpuPod one": "8"}), 1),
        (replace(REST, versions={"GpuPod one": "7", "ConfigMap pods-conf": "9"}), 1),
        (replace(REST, versions={"GpuPod one": "8"}, wishes={"u1": 2}), 0),
        (replace(REST, versions={"GpuPod one": "8"}, world={"p1": False}), 0),
        (replace(REST, versions={"GpuPod one": "8"}, settled=False), 0),
    ],
)
def test_only_a_write_without_a_change_is_found(after, told):
    found = list(written(REST, after))
    assert len(found) == told
    assert all(sentence.startswith("I9") for sentence in found)


@pytest.mark.parametrize(
    ("ready", "stalled", "reconciling", "generation", "deleted", "told"),
    [
        ("True", "False", "False", 2, None, True),
        ("False", "True", "False", 2, None, True),
        ("False", "False", "True", 2, None, False),
        ("True", "False", "True", 2, None, False),
        ("True", "False", "False", 1, None, False),
        ("True", "False", "False", 2, "now", False),
    ],
)
def test_settled_is_ready_or_stalled_with_the_last_edit_seen(ready, stalled, reconciling, generation, deleted, told):
    states = {"Ready": ready, "Stalled": stalled, "Reconciling": reconciling}
    raw = {
        "metadata": {"generation": 2, "deletionTimestamp": deleted},
        "status": {
            "observedGeneration": generation,
            "conditions": [{"type": kind, "status": status} for kind, status in states.items()],
        },
    }
    assert settled(raw) is told


@pytest.mark.parametrize("name", ["cmdline", "environ"])
def test_a_process_that_shows_a_secret_is_found(tmp_path, name):
    for number in ("7", "8"):
        (tmp_path / number).mkdir()
        (tmp_path / number / "cmdline").write_bytes(b"python\0-m\0gpupod_operator\0")
        (tmp_path / number / "environ").write_bytes(b"HOME=/root\0")
    (tmp_path / "8" / name).write_bytes(b"python\0--token\0hf_x\0")
    found = processes_show(["hf_x"], proc=tmp_path)
    assert len(found) == 1
    assert "process 8" in found[0]
    assert processes_show(["hf_x"], ["python"], tmp_path) == []
