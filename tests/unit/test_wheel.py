"""What somebody gets who installs the project instead of cloning it."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel_names(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    target = tmp_path_factory.mktemp("wheel")
    built = subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(target), str(ROOT)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    (wheel,) = target.glob("*.whl")
    return set(zipfile.ZipFile(wheel).namelist())


def test_wheel_holds_everything_that_a_rehearsal_and_an_installation_need(wheel_names: set[str]):
    expected = {f"gpupod_operator/crds/{file.name}" for file in (ROOT / "crds").glob("*.yaml")}
    expected |= {f"gpupod_rehearsal/{file.relative_to(ROOT)}" for file in (ROOT / "manifests").rglob("*.yaml")}
    for module in ("kubernetes", "etcd"):
        expected |= {f"gpupod_rehearsal/controlplane/{module}/go.{kind}" for kind in ("mod", "sum")}
    expected |= {f"{package}/py.typed" for package in ("gpupod_operator", "gpupod_cell", "gpupod_rehearsal")}
    assert len(expected) > 10
    assert expected <= wheel_names


def test_wheel_puts_nothing_else_on_the_import_path(wheel_names: set[str]):
    tops = {name.split("/")[0] for name in wheel_names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {
        "gpupod_operator",
        "gpupod_cell",
        "gpupod_rehearsal",
    }
    assert not any("__pycache__" in name or "/tests/" in name for name in wheel_names)


def test_editable_install_has_no_copy_of_the_manifests():
    """A copy in site-packages would shadow the checkout's files and go stale."""
    copies = [path for entry in sys.path if "site-packages" in entry for path in Path(entry).glob("gpupod_*/crds")]
    assert copies == []
