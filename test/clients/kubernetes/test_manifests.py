"""The manifests are valid, and their numbers agree. Claims docs/kubernetes.md."""

import os
import re
import shutil
import subprocess

import kubernetes_validate
import pytest
import yaml
from sandbox_process import EXECUTABLE, ROOT, Sandbox
from shard_rows import newest_rows, state_in
from user_folder import account

FOLDER = ROOT / "deploy" / "kubernetes"
STEPS = FOLDER / "setup" / "steps.sh"
METADATA = yaml.safe_load((ROOT / "metadata.yaml").read_text())["data"]
OBJECTS = [
    thing
    for path in sorted(FOLDER.glob("*/*.yaml"))
    if path.name != "kustomization.yaml"
    for thing in yaml.safe_load_all(path.read_text())
]
JOBS = {thing["metadata"]["name"]: thing["spec"] for thing in OBJECTS if thing["kind"] == "Job"}


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
    with_key = [c["name"] for c in containers() if any("secretRef" in source for source in c["envFrom"])]
    assert with_key == ["read", "finish", "plan", "shard"]


def test_a_step_is_tried_as_often_as_its_script_says():
    tries = int(re.search(r"^tries=(\d+)", STEPS.read_text(), re.MULTILINE)[1])
    for job in ("plan", "shards"):
        assert JOBS[f"contact-intelligence-{job}"]["backoffLimitPerIndex"] == tries - 1


def test_a_pod_of_a_dead_node_is_replaced():
    """With a podFailurePolicy, a Job waits for the end of a pod whose node cannot tell it."""
    for thing in OBJECTS:
        assert "podFailurePolicy" not in str(thing)


def test_the_commands_of_docs_kubernetes_md_name_what_is_there():
    page = (ROOT / "docs" / "kubernetes.md").read_text()
    for path in re.findall(r"kubectl (?:apply|delete) -k (\S+)", page):
        assert (ROOT / path / "kustomization.yaml").is_file()
    for waited in re.findall(r"job/(contact-intelligence-\w+)", page):
        assert waited in JOBS


def built(folder, home=None, change=()):
    """What kustomize makes of a folder, after a change of its text."""
    if change:
        shutil.copytree(FOLDER, home / "manifests")
        folder = home / "manifests" / folder
        text = (folder / "kustomization.yaml").read_text()
        assert change[0] in text
        (folder / "kustomization.yaml").write_text(text.replace(*change))
    else:
        folder = FOLDER / folder
    try:
        ended = subprocess.run(["kubectl", "kustomize", folder], capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("kubectl is not installed")
    assert ended.returncode == 0, ended.stderr
    return {(thing["kind"], thing["metadata"]["name"]): thing for thing in yaml.safe_load_all(ended.stdout)}


def test_one_number_decides_how_many_shards_there_are(tmp_path):
    things = built("first-load", tmp_path, ("SHARDS=10", "SHARDS=24"))
    shards = things["Job", "contact-intelligence-shards"]["spec"]
    assert (shards["completions"], shards["maxFailedIndexes"]) == (24, 24)
    assert shards["parallelism"] == int(things["ConfigMap", "contact-intelligence-first-load"]["data"]["SHARDS_AT_ONCE"])
    plan = things["Job", "contact-intelligence-plan"]["spec"]["template"]
    assert plan["metadata"]["annotations"] == {"completions": "24"}


def test_the_open_port_is_the_one_of_the_address(tmp_path):
    things = built("setup", tmp_path, ("example.com:443", "example.com:8443"))
    policy = things["NetworkPolicy", "contact-intelligence"]["spec"]["egress"]
    assert policy[1]["ports"] == [{"port": 8443, "protocol": "TCP"}]


def test_what_holds_rows_and_state_goes_with_the_setup_alone():
    kinds = {name: {kind for kind, _ in built(name)} for name in ("setup", "first-load", "daily")}
    assert {"PersistentVolumeClaim", "Namespace", "NetworkPolicy"} <= kinds["setup"]
    assert kinds["first-load"] == {"Job", "ConfigMap"}
    assert kinds["daily"] == {"CronJob"}


def test_a_bucket_takes_the_place_of_the_volume(tmp_path):
    manifests = tmp_path / "manifests"
    shutil.copytree(FOLDER, manifests)
    for name, part in (("setup", "settings"), ("first-load", "pods"), ("daily", "pods")):
        with (manifests / name / "kustomization.yaml").open("a") as file:
            file.write(f"components:\n  - ../bucket/{part}\n")
        things = built(manifests / name)
        assert not any(kind == "PersistentVolumeClaim" for kind, _ in things)
        for (kind, _), thing in things.items():
            if kind not in ("Job", "CronJob"):
                continue
            kubernetes_validate.validate(thing, "1.29", strict=True)
            job = thing["spec"] if kind == "Job" else thing["spec"]["jobTemplate"]["spec"]
            pod = job["template"]["spec"]
            assert [len(pod["initContainers"]), len(pod["containers"])] == [2, 1]
            first, step, last = [*pod["initContainers"], *pod["containers"]]
            assert (first["name"], last["name"]) == ("pull", "push") and "/steps/steps.sh" in step["command"]
            assert {"name": "data", "emptyDir": {}} in pod["volumes"]


def steps(home, sandbox, **variables):
    """Runs one step of a first load as a pod does, in a folder in place of the volume."""

    def run(name, **more):
        environment = {
            "PATH": os.environ["PATH"],
            "AIRBYTE_ENTRYPOINT": f"node {EXECUTABLE}",
            **account(sandbox),
            "DATA": str(home),
            **{"PLAN": "first", "SHARDS": "3", "COMPLETIONS": "3", "STREAMS": "people", **variables, **more},
        }
        ended = subprocess.run(
            ["sh", STEPS, name], env=environment, capture_output=True, text=True, timeout=60
        )
        return ended.returncode, ended.stderr

    return run


@pytest.fixture(scope="module")
def sandbox():
    with Sandbox(people=300, undated=3, days=100, requestsPerMinute=0) as service:
        yield service


def begun(home, *jobs):
    """As if these Jobs had begun before something failed: what is older is not theirs."""
    (home / "plans" / "first").mkdir(parents=True, exist_ok=True)
    for job in jobs:
        (home / "plans" / "first" / f"begun-{job}").touch()


def test_the_plan_refuses_numbers_that_do_not_agree_and_the_finish_says_so(sandbox, tmp_path):
    run = steps(tmp_path, sandbox)
    code, said = run("plan", COMPLETIONS="5")
    assert code == 2 and "SHARDS is 3, but the Job has 5 completions" in said
    begun(tmp_path, "a", "b")
    assert run("finish", JOB_UID="a")[0] == 2
    assert run("plan")[0] == 0
    code, said = run("plan", SHARDS="5", COMPLETIONS="5")
    assert code == 2 and 'the plan "first" has 3 shards of people, not 5' in said
    code, said = run("finish", JOB_UID="b")
    assert code == 2 and "plan failed with exit code 2" in said and "give PLAN another name" in said


def test_a_plan_that_was_cut_off_goes_on(sandbox, tmp_path):
    run = steps(tmp_path, sandbox)
    assert run("plan")[0] == 0
    plan = tmp_path / "plans" / "first" / "plan.jsonl"
    whole = plan.read_text()
    plan.unlink()
    plan.with_name("plan.jsonl.part").write_text(whole[: whole.index("\n") + 20])
    assert run("plan")[0] == 0
    assert plan.read_text().splitlines()[0] == whole.splitlines()[0]
    assert len(plan.read_text().splitlines()) == 3


def test_a_shard_that_fails_is_named_and_a_new_plan_is_never_mixed_with_the_old_one(sandbox, tmp_path):
    run = steps(tmp_path, sandbox)
    assert run("plan")[0] == 0
    assert run("shard", JOB_COMPLETION_INDEX="1", CONTACT_INTELLIGENCE_BASE_URL="http://127.0.0.1:1")[0] == 2
    begun(tmp_path, "a")
    code, said = run("finish", JOB_UID="a")
    assert run("finish", JOB_UID="a")[0] == 2, "another try of the same Job ends at once"
    assert code == 2 and "shard 1 failed with exit code 2. Try 1 of 9, the last" in said
    # Some rows with e-mails, then a plan without: nothing of the first may be taken for the second.
    assert run("shard", JOB_COMPLETION_INDEX="0")[0] == 0
    drop = {"CONTACT_INTELLIGENCE_DROP_FIELDS": "email"}
    code, said = run("shard", JOB_COMPLETION_INDEX="1", **drop)
    assert code == 2 and "the config differs" in said
    again = steps(tmp_path, sandbox, PLAN="second", **drop)
    assert again("plan")[0] == 0
    for index in "012":
        assert again("shard", JOB_COMPLETION_INDEX=index)[0] == 0
    code, said = again("finish")
    assert code == 0 and said.count("is of another plan: remove it") == 1
    shutil.rmtree(re.search(r"steps.sh: (\S+) is of another plan", said)[1])
    held = newest_rows(tmp_path / "rows")
    assert set(held) == {row["id"] for row in sandbox.call("people")}
    assert not any("email" in row for row in held.values())
    assert state_in(tmp_path / "state.json")["undated"] is not None
