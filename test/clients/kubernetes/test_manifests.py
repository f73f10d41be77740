"""The manifests are valid, and their numbers agree. Claims docs/kubernetes.md."""

import re
import shutil
import subprocess

import kubernetes_validate
import pytest
import yaml
from conftest import FOLDER, PAGE, STEPS, pod, served, shell
from sandbox_process import ROOT
from shard_rows import newest_rows, state_of_people

METADATA = yaml.safe_load((ROOT / "metadata.yaml").read_text())["data"]
OBJECTS = [
    thing
    for path in sorted(FOLDER.glob("*/*.yaml"))
    if path.name != "kustomization.yaml"
    for thing in yaml.safe_load_all(path.read_text())
]
JOBS = {thing["metadata"]["name"]: thing["spec"] for thing in OBJECTS if thing["kind"] == "Job"}


def pods(things):
    jobs = [thing["spec"] for thing in things if thing["kind"] in ("Job", "CronJob")]
    return [job.get("jobTemplate", {"spec": job})["spec"]["template"]["spec"] for job in jobs]


PODS = pods(OBJECTS)
BUCKET = "  - ../bucket/pods\n"
CONTAINERS = [container for each in PODS for container in [*each.get("initContainers", []), *each["containers"]]]


@pytest.mark.parametrize("version", ["1.29", "1.37"])
@pytest.mark.parametrize("thing", OBJECTS, ids=lambda thing: f"{thing['kind']} {thing['metadata']['name']}")
def test_each_object_is_valid(thing, version):
    kubernetes_validate.validate(thing, version, strict=True)


def test_every_pod_runs_without_rights():
    for container in CONTAINERS:
        security = container["securityContext"]
        assert security["readOnlyRootFilesystem"] and not security["allowPrivilegeEscalation"]
        assert security["capabilities"] == {"drop": ["ALL"]}
        assert container["resources"]["requests"]["memory"] and container["resources"]["limits"]["memory"]
    for each in PODS:
        assert each["securityContext"]["runAsNonRoot"] and not each["automountServiceAccountToken"]
        assert {rule["tolerationSeconds"] for rule in each["tolerations"]} == {15}


def test_the_key_comes_from_a_secret_and_stands_in_no_file():
    for path in FOLDER.glob("**/*"):
        if path.is_file():
            assert "API_KEY" not in path.read_text(), path
    with_key = [c["name"] for c in CONTAINERS if any("secretRef" in source for source in c["envFrom"])]
    assert with_key == ["read", "finish", "plan", "shard"]


def test_a_step_is_tried_as_often_as_its_script_says_and_again_when_a_node_dies():
    tries = int(re.search(r"^tries=(\d+)", STEPS.read_text(), re.MULTILINE)[1])
    for job in ("plan", "shards"):
        assert JOBS[f"contact-intelligence-{job}"]["backoffLimitPerIndex"] == tries - 1
    # With a podFailurePolicy, a Job waits for the end of a pod whose node cannot tell it.
    assert "podFailurePolicy" not in str(OBJECTS)


def test_the_commands_of_docs_kubernetes_md_name_what_is_there():
    for path in re.findall(r"kubectl (?:apply|delete) -k (\S+)", PAGE):
        assert (ROOT / path / "kustomization.yaml").is_file()
    assert set(re.search(r"wait.sh (.*)", PAGE)[1].split()) == set(JOBS)


@pytest.fixture
def built(tmp_path):
    """What kustomize makes of a folder, after a change of its text."""
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed")
    shutil.copytree(FOLDER, tmp_path / "manifests")

    def build(name, old="", new=""):
        folder = tmp_path / "manifests" / name
        text = (folder / "kustomization.yaml").read_text()
        assert old in text
        (folder / "kustomization.yaml").write_text(text.replace(old, new) if old else text + new)
        words = ["kubectl", "kustomize", folder]
        made = subprocess.run(words, check=True, stdout=subprocess.PIPE).stdout
        return {(thing["kind"], thing["metadata"]["name"]): thing for thing in yaml.safe_load_all(made)}

    return build


def test_one_number_decides_how_many_shards_there_are(built):
    things = built("first-load", "SHARDS=10", "SHARDS=24")
    shards = things["Job", "contact-intelligence-shards"]["spec"]
    assert (shards["completions"], shards["maxFailedIndexes"]) == (24, 24)
    assert shards["parallelism"] == int(things["ConfigMap", "contact-intelligence-first-load"]["data"]["SHARDS_AT_ONCE"])
    plan = things["Job", "contact-intelligence-plan"]["spec"]["template"]
    assert plan["metadata"]["annotations"] == {"completions": "24"}


def test_one_name_of_the_image_is_that_of_all_pods_and_of_the_pages_commands(built):
    asked = re.search(r"image=\$\((.*)\)\n", PAGE)[1]
    name = subprocess.run(["sh", "-c", asked], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    assert name == f"{METADATA['dockerRepository']}:{METADATA['dockerImageTag']}"
    things = [*built("first-load").values(), *built("daily").values()]
    assert {container["image"] for each in pods(things) for container in each["containers"]} == {name}


def test_the_open_port_is_the_one_of_the_address(built):
    things = built("setup", "example.com:443", "example.com:8443")
    policy = things["NetworkPolicy", "contact-intelligence"]["spec"]["egress"]
    assert policy[1]["ports"] == [{"port": 8443, "protocol": "TCP"}]


def test_what_holds_rows_and_state_goes_with_the_setup_alone(built):
    kinds = {name: {kind for kind, _ in built(name)} for name in ("setup", "first-load", "daily")}
    assert {"PersistentVolumeClaim", "Namespace", "NetworkPolicy"} <= kinds["setup"]
    assert kinds["first-load"] == {"Job", "ConfigMap"}
    assert kinds["daily"] == {"CronJob"}


@pytest.mark.parametrize(
    "name, part", [("setup", "components:\n  - ../bucket/settings\n"), ("first-load", BUCKET), ("daily", BUCKET)]
)
def test_a_bucket_takes_the_place_of_the_volume(built, name, part):
    things = built(name, new=part).values()
    for thing in things:
        assert thing["kind"] != "PersistentVolumeClaim"
        kubernetes_validate.validate(thing, "1.29", strict=True)
    for each in pods(things):
        first, step = each["initContainers"]
        (last,) = each["containers"]
        assert (first["name"], last["name"]) == ("pull", "push") and "/steps/steps.sh" in step["command"]
        assert {"name": "data", "emptyDir": {}} in each["volumes"]


@pytest.fixture
def step(sandbox, tmp_path):
    """Runs one step of a first load."""
    return lambda name, **more: shell(STEPS, name, {**pod(sandbox, tmp_path), **more})


def begun(home, *jobs):
    """As if these Jobs had begun before something failed: what is older is not theirs."""
    (home / "plans" / "first").mkdir(parents=True, exist_ok=True)
    for job in jobs:
        (home / "plans" / "first" / f"begun-{job}").touch()


def test_the_plan_refuses_numbers_that_do_not_agree_and_the_finish_says_so(step, tmp_path):
    code, said = step("plan", COMPLETIONS="5")
    assert code == 2 and "SHARDS is 3, but the Job has 5 completions" in said
    begun(tmp_path, "a", "b")
    assert step("finish", JOB_UID="a")[0] == 2
    assert step("plan")[0] == 0
    code, said = step("plan", SHARDS="5", COMPLETIONS="5")
    assert code == 2 and 'the plan "first" has 3 shards of people, not 5' in said
    code, said = step("finish", JOB_UID="b")
    assert code == 2 and "plan failed with exit code 2" in said and "give PLAN another name" in said


def test_a_plan_that_was_cut_off_is_made_again(step, tmp_path):
    plan = tmp_path / "plans" / "first" / "plan.jsonl"
    plan.parent.mkdir(parents=True)
    plan.with_name("plan.jsonl.part").write_text('{"version":3,"pla')
    assert step("plan")[0] == 0
    assert len(plan.read_text().splitlines()) == 3


def test_a_shard_that_fails_is_named_and_a_new_plan_is_never_mixed_with_the_old_one(sandbox, step, tmp_path):
    assert step("plan")[0] == 0
    assert step("shard", JOB_COMPLETION_INDEX="1", CONTACT_INTELLIGENCE_NUM_WORKERS="0")[0] == 2
    begun(tmp_path, "a")
    code, said = step("finish", JOB_UID="a")
    assert step("finish", JOB_UID="a")[0] == 2, "another try of the same Job ends at once"
    assert code == 2 and "shard 1 failed with exit code 2. Try 1 of 9, the last" in said
    # Some rows with e-mails, then a plan without: nothing of the first may be taken for the second.
    assert step("shard", JOB_COMPLETION_INDEX="0")[0] == 0
    drop = {"CONTACT_INTELLIGENCE_DROP_FIELDS": "email"}
    again = {"PLAN": "second", **drop}
    assert step("plan", **again)[0] == 0
    for index in "012":
        assert step("shard", JOB_COMPLETION_INDEX=index, **again)[0] == 0
    code, said = step("finish", **again)
    assert code == 0 and said.count("is of another plan: remove it") == 1
    shutil.rmtree(re.search(r"steps.sh: (\S+) is of another plan", said)[1])
    held = newest_rows(tmp_path / "contacts")
    assert set(held) == set(served(sandbox))
    assert not any("email" in row for row in held.values())
    assert state_of_people(tmp_path / "state.json")["undated"] is not None
