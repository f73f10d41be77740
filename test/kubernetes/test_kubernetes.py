"""The manifests are valid, and what their containers run gives everyone once. Claims docs/kubernetes.md."""

import json
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor

import kubernetes_validate
import pytest
import yaml
from sandbox_process import EXECUTABLE, ROOT, Sandbox

MANIFESTS = sorted((ROOT / "deploy" / "kubernetes").glob("*.yaml"))
METADATA = yaml.safe_load((ROOT / "metadata.yaml").read_text())["data"]
OBJECTS = [thing for path in MANIFESTS for thing in yaml.safe_load_all(path.read_text())]
JOBS = {thing["metadata"]["name"]: thing["spec"] for thing in OBJECTS if thing["kind"] == "Job"}
(CONFIG,) = [thing["data"] for thing in OBJECTS if thing["kind"] == "ConfigMap"]
SHARDS = JOBS["contact-intelligence-backfill"]


def container_of(job):
    (container,) = job["template"]["spec"]["containers"]
    return container


def environment_of(job):
    return {name["name"]: name["value"] for name in container_of(job)["env"] if "value" in name}


@pytest.mark.parametrize("version", ["1.29", "1.37"])
@pytest.mark.parametrize("thing", OBJECTS, ids=lambda thing: f"{thing['kind']} {thing['metadata']['name']}")
def test_each_object_is_valid(thing, version):
    kubernetes_validate.validate(thing, version, strict=True)


def test_jobs_run_the_image_of_the_metadata_as_nobody_in_particular():
    for job in JOBS.values():
        image = f"{METADATA['dockerRepository']}:{METADATA['dockerImageTag']}"
        assert container_of(job)["image"] == image
        assert container_of(job)["securityContext"]["readOnlyRootFilesystem"]
        assert job["template"]["spec"]["securityContext"]["runAsNonRoot"]


def test_shards_share_the_requests_of_one_key():
    each = int(environment_of(SHARDS)["CONTACT_INTELLIGENCE_REQUESTS_PER_MINUTE"])
    assert each * SHARDS["parallelism"] <= 60


def test_the_rest_begins_where_the_last_shard_ends():
    (state,) = json.loads(CONFIG["after-shards.json"])
    last = int(CONFIG["FIRST_YEAR"]) + SHARDS["completions"] - 1
    assert state["stream"]["stream_state"]["discoveredAt"] == f"{last}-12-31T23:59:59.999Z"


def run_script(name, folder, environment):
    ended = subprocess.run(
        ["sh", str(folder / name)],
        env={"PATH": os.environ["PATH"], "AIRBYTE_ENTRYPOINT": f"node {EXECUTABLE}", **environment},
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr


def rows_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_shards_and_rest_together_are_everyone(tmp_path):
    settings, out = tmp_path / "settings", tmp_path / "out"
    settings.mkdir()
    out.mkdir()
    for name, text in CONFIG.items():
        (settings / name).write_text(text)
    with Sandbox(people=5000, undated=11, days=4000, requestsPerMinute=0, now="2026-11-21T10:00:00Z") as sandbox:
        service = {
            "CONTACT_INTELLIGENCE_BASE_URL": sandbox.url,
            "CONTACT_INTELLIGENCE_API_KEY": sandbox.key,
            "OUT": str(out),
            "SETTINGS": str(settings),
        }

        def run_shard(index):
            run_script(
                "shard.sh",
                settings,
                {**service, "FIRST_YEAR": CONFIG["FIRST_YEAR"], "JOB_COMPLETION_INDEX": str(index)},
            )
            # Somebody leaves a year that may not have been read yet, for today.
            sandbox_lock.submit(sandbox.call, "recheck", 5).result()

        with ThreadPoolExecutor(1) as sandbox_lock, ThreadPoolExecutor(SHARDS["parallelism"]) as cluster:
            list(cluster.map(run_shard, range(SHARDS["completions"])))
        run_script("rest.sh", settings, service)
        served = {row["id"]: row for row in sandbox.call("people")}
    shards = sorted(path for path in out.iterdir() if path.name != "people-rest.jsonl")
    assert [path.name for path in shards] == [f"people-{year}.jsonl" for year in range(2016, 2026)]
    stored = {row["id"]: row for path in shards for row in rows_of(path)}
    rest = rows_of(out / "people-rest.jsonl")
    assert sum(row["discoveredAt"] is None for row in rest) == 11
    # Rows of the rest are newer than those of the shards.
    assert stored | {row["id"]: row for row in rest} == served
    assert len(rest) < len(served) / 4, "the rest is not everything again"


def test_the_commands_of_docs_kubernetes_md_name_what_is_there():
    page = (ROOT / "docs" / "kubernetes.md").read_text()
    commands = [line.split() for line in page.splitlines() if line.startswith("kubectl")]
    applied = [words[3] for words in commands if words[1] == "apply"]
    waited = [words[-1] for words in commands if words[1] == "wait"]
    assert [ROOT / path for path in applied] == MANIFESTS
    assert waited == [f"job/{name}" for name in JOBS]
