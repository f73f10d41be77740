"""The manifests are valid, and their numbers agree. Claims docs/kubernetes.md."""

import re
import subprocess

import kubernetes_validate
import pytest
import yaml
from sandbox_process import ROOT

FOLDER = ROOT / "deploy" / "kubernetes"
METADATA = yaml.safe_load((ROOT / "metadata.yaml").read_text())["data"]
OBJECTS = [
    thing
    for path in sorted(FOLDER.glob("*/*.yaml"))
    if path.name != "kustomization.yaml"
    for thing in yaml.safe_load_all(path.read_text())
]
JOBS = {thing["metadata"]["name"]: thing["spec"] for thing in OBJECTS if thing["kind"] == "Job"}
SHARDS = JOBS["contact-intelligence-shards"]


def pods():
    for thing in OBJECTS:
        if thing["kind"] == "Job":
            yield thing["spec"]["template"]["spec"]
        if thing["kind"] == "CronJob":
            yield thing["spec"]["jobTemplate"]["spec"]["template"]["spec"]


def containers():
    for pod in pods():
        yield from [*pod.get("initContainers", []), *pod["containers"]]


@pytest.mark.parametrize("version", ["1.29", "1.37"])
@pytest.mark.parametrize("thing", OBJECTS, ids=lambda thing: f"{thing['kind']} {thing['metadata']['name']}")
def test_each_object_is_valid(thing, version):
    kubernetes_validate.validate(thing, version, strict=True)


def test_every_pod_runs_the_image_of_the_metadata_without_rights():
    image = f"{METADATA['dockerRepository']}:{METADATA['dockerImageTag']}"
    for container in containers():
        assert container["image"] == image
        security = container["securityContext"]
        assert security["readOnlyRootFilesystem"] and not security["allowPrivilegeEscalation"]
        assert security["capabilities"] == {"drop": ["ALL"]}
        assert container["resources"]["requests"]["memory"] and container["resources"]["limits"]["memory"]
    for pod in pods():
        assert pod["securityContext"]["runAsNonRoot"] and not pod["automountServiceAccountToken"]
        assert {rule["tolerationSeconds"] for rule in pod["tolerations"]} == {15}


def test_the_key_comes_from_a_secret_and_stands_in_no_file():
    for path in FOLDER.glob("**/*"):
        if path.is_file():
            assert "API_KEY" not in path.read_text(), path
    readers = [container for container in containers() if "$AIRBYTE_ENTRYPOINT" in container["args"][0]]
    with_key = [c["name"] for c in readers if any("secretRef" in source for source in c["envFrom"])]
    assert with_key == ["read", "open-shard", "plan", "shard"], "merging asks the service nothing"


def test_the_numbers_that_must_agree_agree():
    settings = (FOLDER / "base" / "kustomization.yaml").read_text()
    numbers = dict(re.findall(r"- (SHARDS\w*)=(\d+)", settings))
    assert int(numbers["SHARDS"]) == SHARDS["completions"]


def test_the_commands_of_docs_kubernetes_md_name_what_is_there():
    page = (ROOT / "docs" / "kubernetes.md").read_text()
    applied = re.findall(r"kubectl apply -k (\S+)", page)
    assert [ROOT / path for path in applied] == [FOLDER / "first-load", FOLDER / "daily"]
    for waited in re.findall(r"job/(contact-intelligence-\w+)", page):
        assert waited in JOBS


@pytest.mark.parametrize("name", ["first-load", "daily"])
def test_kustomize_builds(name):
    try:
        ended = subprocess.run(["kubectl", "kustomize", FOLDER / name], capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("kubectl is not installed")
    assert ended.returncode == 0, ended.stderr
