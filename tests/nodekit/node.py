"""containerd, kubelet, kube-proxy and kube-scheduler, started in order and ended in the other."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import threading
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import yaml

from gpupod_rehearsal.controlplane import ControlPlane
from gpupod_rehearsal.controlplane.process import Server
from nodekit import programs
from nodekit.enter import INSIDE
from nodekit.images import PAUSE_IMAGE
from nodekit.network import API_SERVICE_IP, NODE_IP, POD_SUBNET

NAME = "node"
KUBELET_PORT, PROXY_PORT, SCHEDULER_PORT = 10248, 10256, 10259


def images() -> Path:
    """The folder that `enter` prepared."""
    return Path(os.environ[INSIDE])


@contextlib.contextmanager
def cluster(workdir: Path, *, apiserver_args: Sequence[str] = ()) -> Iterator[ControlPlane]:
    """A whole cluster with one node. The images are imported; the node may not be Ready yet."""
    launch = ControlPlane.start(
        workdir / "control-plane",
        progress=lambda _: None,
        controllers=("*",),
        apiserver_args=(
            "--bind-address=0.0.0.0",
            f"--advertise-address={NODE_IP}",
            "--endpoint-reconciler-type=lease",
            "--kubelet-preferred-address-types=InternalIP",
            *apiserver_args,
        ),
        addresses=(NODE_IP, API_SERVICE_IP),
    )
    with launch as plane, contextlib.ExitStack() as stack:
        bin_folder = programs.cache_folder()
        kubeconfig = plane.access.kubeconfig
        runtime = _containerd(bin_folder, workdir / "containerd")
        for server in (
            runtime,
            _kubelet(bin_folder, workdir / "kubelet", kubeconfig, workdir / "containerd"),
            _proxy(bin_folder, workdir, kubeconfig),
            _scheduler(bin_folder, workdir, kubeconfig),
        ):
            server.start()
            stack.callback(server.stop)
            if server is runtime:
                for archive in sorted(images().glob("*.tar")):
                    _ctr(bin_folder, workdir / "containerd", "images", "import", "--all-platforms", str(archive))
        yield plane


def ctr_of(workdir: Path) -> Callable[..., str]:
    """containerd's own command line, for the containers of the kubelet."""
    return lambda *arguments: _ctr(programs.cache_folder(), workdir / "containerd", *arguments)


def _ctr(bin_folder: Path, folder: Path, *arguments: str) -> str:
    order = [str(bin_folder / "ctr"), "--address", str(folder / "containerd.sock"), "-n", "k8s.io", *arguments]
    done = subprocess.run(order, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"ctr {' '.join(arguments)}: {done.stderr[-800:]}")
    return done.stdout


def _containerd(bin_folder: Path, folder: Path) -> Server:
    folder.mkdir(parents=True)
    cni = folder / "cni"
    cni.mkdir()
    (cni / "10-bridge.conflist").write_text(
        json.dumps(
            {
                "cniVersion": "1.0.0",
                "name": "bridge",
                "plugins": [
                    {
                        "type": "bridge",
                        "bridge": "cni0",
                        "isGateway": True,
                        "hairpinMode": True,
                        "ipam": {
                            "type": "host-local",
                            "ranges": [[{"subnet": POD_SUBNET}]],
                            "routes": [{"dst": "0.0.0.0/0"}],
                            "dataDir": str(folder / "ipam"),
                        },
                    },
                    {"type": "portmap", "capabilities": {"portMappings": True}},
                ],
            }
        )
    )
    config = folder / "config.toml"
    config.write_text(f"""
version = 3
root = "{folder / "root"}"
state = "{folder / "state"}"
[grpc]
  address = "{folder / "containerd.sock"}"
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = "{PAUSE_IMAGE}"
[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true
  disable_apparmor = true
  disable_hugetlb_controller = true
  netns_mounts_under_state_dir = true
[plugins.'io.containerd.cri.v1.runtime'.cni]
  bin_dirs = ["{programs.CNI}"]
  conf_dir = "{cni}"
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
  SystemdCgroup = false
  Root = "{folder / "runc"}"
""")
    path = f"{bin_folder}:{os.environ.get('PATH', '/usr/sbin:/usr/bin:/sbin:/bin')}"
    sock = folder / "containerd.sock"
    return Server(
        "containerd",
        ["/usr/bin/env", f"PATH={path}", str(bin_folder / "containerd"), "--config", str(config)],
        log=folder / "containerd.log",
        ready=lambda: sock.exists() and _answers(lambda: _ctr(bin_folder, folder, "version")),
        abandon=threading.Event(),
    )


def _kubelet(bin_folder: Path, folder: Path, kubeconfig: Path, runtime: Path) -> Server:
    folder.mkdir(parents=True)
    config = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": NODE_IP,
        "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
        "authorization": {"mode": "AlwaysAllow"},
        "containerRuntimeEndpoint": f"unix://{runtime / 'containerd.sock'}",
        "healthzPort": KUBELET_PORT,
        "failCgroupV1": False,
        "cgroupDriver": "cgroupfs",
        "cgroupsPerQOS": False,
        "enforceNodeAllocatable": [],
        "resolvConf": "",
        "failSwapOn": False,
        "evictionHard": {"nodefs.available": "0%", "imagefs.available": "0%", "nodefs.inodesFree": "0%"},
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "volumePluginDir": str(folder / "plugins"),
        "podLogsDir": str(folder / "logs"),
        "nodeStatusUpdateFrequency": "2s",
    }
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    return Server(
        "kubelet",
        [
            str(bin_folder / "kubelet"),
            f"--config={folder / 'config.yaml'}",
            f"--kubeconfig={kubeconfig}",
            f"--root-dir={folder / 'root'}",
            f"--cert-dir={folder / 'pki'}",
            f"--hostname-override={NAME}",
            f"--node-ip={NODE_IP}",
        ],
        log=folder / "kubelet.log",
        ready=lambda: _serves(f"http://127.0.0.1:{KUBELET_PORT}/healthz"),
        abandon=threading.Event(),
    )


def _proxy(bin_folder: Path, workdir: Path, kubeconfig: Path) -> Server:
    return Server(
        "kube-proxy",
        [
            str(bin_folder / "kube-proxy"),
            f"--kubeconfig={kubeconfig}",
            f"--hostname-override={NAME}",
            "--proxy-mode=iptables",
            f"--cluster-cidr={POD_SUBNET}",
            "--conntrack-max-per-core=0",
            f"--healthz-bind-address=127.0.0.1:{PROXY_PORT}",
            "--metrics-bind-address=127.0.0.1:10249",
        ],
        log=workdir / "kube-proxy.log",
        ready=lambda: _serves(f"http://127.0.0.1:{PROXY_PORT}/livez"),
        abandon=threading.Event(),
    )


def _scheduler(bin_folder: Path, workdir: Path, kubeconfig: Path) -> Server:
    return Server(
        "kube-scheduler",
        [
            str(bin_folder / "kube-scheduler"),
            f"--kubeconfig={kubeconfig}",
            f"--authentication-kubeconfig={kubeconfig}",
            f"--authorization-kubeconfig={kubeconfig}",
            "--leader-elect=false",
            "--bind-address=127.0.0.1",
            f"--secure-port={SCHEDULER_PORT}",
            f"--cert-dir={workdir / 'scheduler'}",
        ],
        log=workdir / "kube-scheduler.log",
        ready=lambda: True,
        abandon=threading.Event(),
    )


def _answers(ask: Callable[[], object]) -> bool:
    try:
        ask()
    except RuntimeError:
        return False
    return True


def _serves(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
