"""A first load in shards and a daily run on a real cluster of two nodes, one of which dies. Claims docs/kubernetes.md.

TEST_CLUSTER names a folder with four programs: `up NODES` starts a cluster and prints `export KUBECONFIG=…`,
`load IMAGE` brings an image onto every node, `node stop N` kills a node, `down` ends the cluster, if there is one. Without
it the suite skips, unless TEST_CLUSTER_REQUIRED is set.
"""

import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import time

import pytest
from conftest import FOLDER, PAGE, served
from products import image
from sandbox_process import ROOT, Sandbox
from shard_rows import newest_rows, state_of_people

CLUSTER = os.environ.get("TEST_CLUSTER", "")
# docs/dev/scale.md says what 200,000 people and 60 requests a minute took.
PEOPLE = int(os.environ.get("TEST_CLUSTER_PEOPLE", "20003"))
PER_MINUTE = int(os.environ.get("TEST_CLUSTER_REQUESTS_PER_MINUTE", "0"))
NAMESPACE = "contact-intelligence"

if not pathlib.Path(CLUSTER, "up").is_file() or CLUSTER == "":
    if os.environ.get("TEST_CLUSTER_REQUIRED"):
        raise RuntimeError("TEST_CLUSTER names no folder with a program `up`")
    pytest.skip("there is no cluster: TEST_CLUSTER is not set", allow_module_level=True)


def output_of(*words):
    ended = subprocess.run(words, capture_output=True, text=True, timeout=600)
    assert ended.returncode == 0, f"{words}\n{ended.stdout}{ended.stderr}"
    return ended.stdout


def program(name, *words):
    return output_of(f"{CLUSTER}/{name}", *words)


def kubectl(*words):
    return output_of("kubectl", "--namespace", NAMESPACE, *words)


def until(seconds, condition, why):
    for _ in range(seconds):
        if condition():
            return
        time.sleep(1)
    raise AssertionError(f"gave up waiting: {why}\n" + describe())


def describe():
    words = f"kubectl --namespace {NAMESPACE} logs -l app=contact-intelligence --all-containers --prefix --tail=5"
    logs = subprocess.run(words.split(), capture_output=True, text=True).stdout
    return kubectl("get", "pods", "-o", "wide") + logs[-5000:]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Two nodes, each with the image, and a folder for a volume that both see."""
    home = tmp_path_factory.mktemp("cluster")
    program("down")  # a suite that was killed leaves its cluster behind
    started = program("up", "2")
    os.environ["KUBECONFIG"] = re.search(r"export KUBECONFIG=(\S+)", started)[1]
    try:
        program("load", image())
        data = home / "data"
        data.mkdir()
        data.chmod(0o777)
        for folder in [home, *home.parents]:
            if folder.owner() == "root" and folder != pathlib.Path("/"):
                folder.chmod(folder.stat().st_mode | 0o055)
        yield home
    finally:
        program("down")


def manifests(home, address):
    """The manifests with this address, plus what this machine needs: the host's network and a volume that is a folder."""
    shutil.copytree(FOLDER, home / "deploy" / "kubernetes")
    setup = home / "deploy" / "kubernetes" / "setup" / "kustomization.yaml"
    setup.write_text(setup.read_text().replace("https://contacts.example.com:443", address))
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "contact-intelligence"},
        "spec": {
            "capacity": {"storage": "20Gi"},
            "accessModes": ["ReadWriteMany"],
            "hostPath": {"path": str(home / "data")},
            "claimRef": {"namespace": NAMESPACE, "name": "contact-intelligence"},
        },
    }
    network = {"op": "add", "value": True}
    levels = "/metadata/labels/pod-security.kubernetes.io~1enforce"
    patches = {
        "setup": ("Namespace", {"op": "replace", "path": levels, "value": "privileged"}),
        "first-load": ("Job", {**network, "path": "/spec/template/spec/hostNetwork"}),
        "daily": ("CronJob", {**network, "path": "/spec/jobTemplate/spec/template/spec/hostNetwork"}),
    }
    for name, (kind, patch) in patches.items():
        folder = home / "here" / name
        folder.mkdir(parents=True)
        (folder / "volume.json").write_text(json.dumps(volume))
        kustomization = {
            "apiVersion": "kustomize.config.k8s.io/v1beta1",
            "kind": "Kustomization",
            "resources": [f"../../deploy/kubernetes/{name}", *(["volume.json"] if name == "setup" else [])],
            "patches": [{"target": {"kind": kind}, "patch": json.dumps([patch])}],
        }
        (folder / "kustomization.yaml").write_text(json.dumps(kustomization))


def commands(heading):
    """What the page says to type below a heading: its commands, each as a list of words."""
    section = re.search(rf"^## {heading}$(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)[1]
    blocks = "\n".join(re.findall(r"```sh\n(.*?)```", section, re.DOTALL)).replace("\\\n", " ")
    return [shlex.split(line) for line in blocks.splitlines() if line.startswith(("kubectl ", "sh "))]


def type_in(home, words):
    """Runs a command of the page."""
    here = [re.sub("^deploy/kubernetes/(?!wait)", f"{home}/here/", word) for word in words]
    return output_of(*here)


def type_in_vain(wait, reason):
    """The page's command that waits ends with exit code 1 and the reason."""
    ended = subprocess.run(wait, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert ended.returncode == 1 and reason in ended.stderr, ended.stdout + ended.stderr


def test_everyone_arrives_though_a_shard_fails_a_node_dies_and_people_move(cluster):
    data = cluster / "data"
    speed = 150_000 * PEOPLE // 20_000
    with Sandbox(
        people=PEOPLE, undated=11, days=4000, requestsPerMinute=PER_MINUTE, bytesPerSecond=speed
    ) as sandbox:
        manifests(cluster, sandbox.url)
        set_up, secret, load, wait, start_daily = commands("Set it up")
        type_in(cluster, set_up)
        key = [word for word in secret if "API_KEY=" not in word]
        more = {"API_KEY": sandbox.key, "REQUESTS_PER_MINUTE": str(PER_MINUTE or 6000)}
        output_of(*key, *(f"--from-literal=CONTACT_INTELLIGENCE_{name}={value}" for name, value in more.items()))

        # No node has the image under this name, and none can pull it.
        image_name = cluster / "deploy" / "kubernetes" / "image" / "kustomization.yaml"
        text = image_name.read_text()
        image_name.write_text(text.replace("newTag: ", "newTag: absent-"))
        type_in(cluster, load)
        type_in_vain(wait, "ImagePull")
        image_name.write_text(text)
        remove = commands("When something fails")[2]
        type_in(cluster, remove)
        type_in(cluster, load)

        # The folder of a shard holds something else: only a person can mend that.
        plan = data / "plans" / "first" / "plan.jsonl"
        until(120, plan.exists, "a plan")
        shard = json.loads(plan.read_text().splitlines()[5])
        obstacle = data / "contacts" / f"shard-{shard['plan']}-5-{shard['from']}-{shard['to']}"
        obstacle.mkdir(parents=True)
        for folder in (obstacle, obstacle.parent):
            folder.chmod(0o777)
        (obstacle / "state.json").write_text("{")
        type_in_vain(wait, "shard 5 failed with exit code 2. Try 1 of 9, the last")
        see, why, remove, *again = commands("When something fails")
        assert "shard 5 failed with exit code 2. Try 1 of 9, the last" in type_in(cluster, see)
        type_in(cluster, [word.replace("=3", "=5") for word in why])
        (obstacle / "state.json").unlink()
        for command in (remove, *again):
            type_in(cluster, command)

        type_in(cluster, wait)

        # Another number of shards, and another plan.
        type_in(cluster, remove)
        numbers = cluster / "deploy" / "kubernetes" / "first-load" / "kustomization.yaml"
        numbers.write_text(numbers.read_text().replace("SHARDS=10", "SHARDS=6").replace("PLAN=first", "PLAN=second"))
        type_in(cluster, load)
        until(120, lambda: busy_on("node2"), "a shard runs on node2")
        program("node", "stop", "2")
        while not ended("contact-intelligence-finish", "Complete"):
            sandbox.call("recheck", 5)
            time.sleep(2)
            assert not ended("contact-intelligence-finish", "Failed"), describe()
        type_in(cluster, wait)

        held = newest_rows(data / "contacts")
        # People who were checked again after the open shard had read them come with the daily run.
        assert set(held) == set(served(sandbox))
        state = state_of_people(data / "state.json")
        assert state["undated"] is not None
        # People left some days while they were read: the daily run reads these again.
        assert not any(span["status"] == "missing" for span in state["days"])

        print(load_figures(sandbox.call("requests"), len(held)))

        sandbox.call("recheck", 40)
        sandbox.call("arrive", 7)
        type_in(cluster, start_daily)
        kubectl("create", "job", "first-day", "--from=cronjob/contact-intelligence-daily")
        type_in(cluster, [*wait[:2], "first-day"])
        assert newest_rows(data / "contacts") == served(sandbox)

        stop_load, stop_daily, *_ = commands("Remove it")
        type_in(cluster, stop_load)
        type_in(cluster, stop_daily)
        assert "Bound" in kubectl("get", "pvc", "contact-intelligence")


def load_figures(requests, people):
    """What the service saw: requests, those of the worst minute, and refusals for too many."""
    moments = sorted(request["at"] for request in requests)
    worst = max(sum(1 for at in moments if begin <= at < begin + 60_000) for begin in moments)
    refused = sum(request["status"] == 429 for request in requests)
    return f"{people} people, {len(moments)} requests, {worst} in the worst minute, {refused} refused with 429"


def ended(job, how):
    status = json.loads(kubectl("get", "job", job, "-o", "json"))["status"]
    return any(c["type"] == how and c["status"] == "True" for c in status.get("conditions", []))


def busy_on(node):
    """Whether a shard's container runs on a node."""
    pods = json.loads(kubectl("get", "pods", "-o", "json"))["items"]
    return any(
        pod["spec"].get("nodeName") == node
        and pod["metadata"]["name"].startswith("contact-intelligence-shards")
        and any("running" in status["state"] for status in pod["status"].get("containerStatuses", []))
        for pod in pods
    )
