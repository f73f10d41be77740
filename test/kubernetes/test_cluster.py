"""A first load in shards and a daily run on a real cluster of two nodes, one of which dies. Claims docs/kubernetes.md.

TEST_CLUSTER names a folder with four programs: `up NODES` starts a cluster and prints `export KUBECONFIG=…`,
`load IMAGE` brings an image onto every node, `node stop N` kills a node, `down` ends the cluster. Without it the suite
skips, unless TEST_CLUSTER_REQUIRED is set.
"""

import json
import os
import pathlib
import re
import subprocess
import time

import pytest
from sandbox_process import EXECUTABLE, ROOT, Sandbox
from shard_rows import newest_rows, state_in

CLUSTER = os.environ.get("TEST_CLUSTER", "")
IMAGE = "contact-intelligence/source-contact-intelligence:0.1.0"
PEOPLE = 20_003
PAGE = (ROOT / "docs" / "kubernetes.md").read_text()

if not pathlib.Path(CLUSTER, "up").is_file() or CLUSTER == "":
    if os.environ.get("TEST_CLUSTER_REQUIRED"):
        raise RuntimeError("TEST_CLUSTER names no folder with a program `up`")
    pytest.skip("there is no cluster: TEST_CLUSTER is not set", allow_module_level=True)


def program(name, *words):
    ended = subprocess.run([f"{CLUSTER}/{name}", *words], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def kubectl(*words, **options):
    ended = subprocess.run(["kubectl", *words], capture_output=True, text=True, **options)
    assert ended.returncode == 0, " ".join(map(str, words)) + "\n" + ended.stdout + ended.stderr
    return ended.stdout


def until(seconds, condition, why):
    for _ in range(seconds):
        if condition():
            return
        time.sleep(1)
    raise AssertionError(f"gave up waiting: {why}\n" + describe())


def describe():
    pods = kubectl("get", "pods", "-o", "wide")
    logs = subprocess.run(
        ["kubectl", "logs", "-l", "app=contact-intelligence", "--all-containers", "--prefix", "--tail=5"],
        capture_output=True, text=True,
    )  # fmt: skip
    return pods + logs.stdout[-5000:]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """The manifests on two nodes, with a volume that both see, and pods that reach a service on this machine."""
    home = tmp_path_factory.mktemp("cluster")
    subprocess.run(["node", "scripts/image.js"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    started = program("up", "2")
    os.environ["KUBECONFIG"] = re.search(r"export KUBECONFIG=(\S+)", started)[1]
    try:
        program("load", IMAGE)
        data = home / "data"
        data.mkdir()
        data.chmod(0o777)
        for folder in [home, *home.parents]:
            if folder.owner() == "root" and folder != pathlib.Path("/"):
                folder.chmod(folder.stat().st_mode | 0o055)
        for name in ("first-load", "daily"):
            overlay(home, name, data)
        yield home
    finally:
        program("down")


def overlay(home, name, data):
    """The manifests as they are, plus what this machine needs: the host's network and a volume that is a folder."""
    folder = home / name
    folder.mkdir()
    base = os.path.relpath(ROOT / "deploy" / "kubernetes" / name, folder)
    spec = "/spec/template/spec" if name == "first-load" else "/spec/jobTemplate/spec/template/spec"
    kind = "Job" if name == "first-load" else "CronJob"
    patch = [{"op": "add", "path": f"{spec}/hostNetwork", "value": True}]
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "contact-intelligence"},
        "spec": {
            "capacity": {"storage": "20Gi"},
            "accessModes": ["ReadWriteMany"],
            "hostPath": {"path": str(data)},
            "claimRef": {"namespace": "default", "name": "contact-intelligence"},
        },
    }
    (folder / "volume.json").write_text(json.dumps(volume))
    kustomization = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [base, "volume.json"],
        "patches": [{"target": {"kind": kind}, "patch": json.dumps(patch)}],
    }
    (folder / "kustomization.yaml").write_text(json.dumps(kustomization))


def succeeded(job):
    status = json.loads(kubectl("get", "job", job, "-o", "json"))["status"]
    return any(c["type"] == "Complete" and c["status"] == "True" for c in status.get("conditions", []))


def test_everyone_arrives_though_a_node_dies_and_people_move(cluster):
    data = cluster / "data"
    with Sandbox(
        people=PEOPLE, undated=11, days=4000, requestsPerMinute=0, bytesPerSecond=150_000
    ) as sandbox:
        secret = re.search(r"kubectl create secret (generic .*?)\n *```", PAGE, re.DOTALL)[1]
        words = secret.replace("\\\n", " ").replace("https://contacts.example.com", sandbox.url).split()
        kubectl("create", "secret", *words, f"--from-literal=CONTACT_INTELLIGENCE_REQUESTS_PER_MINUTE=6000")
        kubectl("apply", "-k", cluster / "first-load")

        until(240, lambda: list(data.glob("rows/shard-*")), "a shard begins")
        until(120, lambda: busy_on("node2"), "a shard runs on node2")
        program("node", "stop", "2")
        while not succeeded("contact-intelligence-finish"):
            sandbox.call("recheck", 5)
            time.sleep(2)
            assert not exhausted("contact-intelligence-finish"), describe()
        kubectl("wait", "--for=condition=complete", "--timeout=60s", "job/contact-intelligence-shards")

        served = {row["id"]: row for row in sandbox.call("people")}
        held = newest_rows(data / "rows")
        # People who were checked again after the open shard had read them come with the daily run.
        assert set(held) == set(served)
        state = state_in(data / "state.json")
        assert state["undated"] is not None
        assert all(len(span) == 3 for span in state["days"])

        sandbox.call("recheck", 40)
        sandbox.call("arrive", 7)
        kubectl("apply", "-k", cluster / "daily")
        kubectl("create", "job", "first-day", "--from=cronjob/contact-intelligence-daily")
        until(240, lambda: succeeded("first-day"), "the daily run")
        served = {row["id"]: row for row in sandbox.call("people")}
        assert newest_rows(data / "rows") == served
        assert newest_rows(plain_run(sandbox, cluster / "plain")) == served


def busy_on(node):
    """Whether a shard's container runs on a node."""
    pods = json.loads(kubectl("get", "pods", "-o", "json"))["items"]
    return any(
        pod["spec"].get("nodeName") == node
        and pod["metadata"]["name"].startswith("contact-intelligence-shards")
        and any("running" in status["state"] for status in pod["status"].get("containerStatuses", []))
        for pod in pods
    )


def exhausted(job):
    status = json.loads(kubectl("get", "job", job, "-o", "json"))["status"]
    return any(c["type"] == "Failed" and c["status"] == "True" for c in status.get("conditions", []))


def plain_run(sandbox, folder):
    """One run of one process, to compare with."""
    environment = {
        "PATH": os.environ["PATH"],
        "CONTACT_INTELLIGENCE_BASE_URL": sandbox.url,
        "CONTACT_INTELLIGENCE_API_KEY": sandbox.key,
        "CONTACT_INTELLIGENCE_REQUESTS_PER_MINUTE": "6000",
    }
    words = ["node", EXECUTABLE, "read", "--stream", "people", "--output", folder]
    subprocess.run(words, env=environment, check=True)
    return folder
