"""The DAGs of deploy/airflow run in a real Airflow, and a worker's process dies in the middle. Claims docs/airflow.md."""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading
import time

import pytest
from sandbox_process import EXECUTABLE, ROOT, Sandbox
from shard_rows import newest_rows, state_in

AIRFLOW = pathlib.Path(sys.executable).with_name("airflow")
PEOPLE = 20_003


@pytest.fixture(scope="module")
def sandbox():
    with Sandbox(
        people=PEOPLE, undated=11, days=400, requestsPerMinute=0, bytesPerSecond=300_000
    ) as service:
        yield service


@pytest.fixture(scope="module")
def airflow(sandbox, tmp_path_factory):
    """Airflow with a home of its own, the DAGs of this project, and the program on the PATH."""
    home = tmp_path_factory.mktemp("airflow")
    (home / "bin").mkdir()
    (home / "bin" / "source-contact-intelligence").symlink_to(EXECUTABLE)
    shutil.copytree(ROOT / "deploy" / "airflow", home / "dags")
    environment = {
        **os.environ,
        "PATH": f"{home / 'bin'}:{AIRFLOW.parent}:{os.environ['PATH']}",
        "HOME": str(home),
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(home / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "CONTACT_INTELLIGENCE_BASE_URL": sandbox.url,
        "CONTACT_INTELLIGENCE_API_KEY": sandbox.key,
        "CONTACT_INTELLIGENCE_REQUESTS_PER_MINUTE": "6000",
        "CONTACT_INTELLIGENCE_SHARED_FOLDER": str(home / "shared"),
        "CONTACT_INTELLIGENCE_SHARDS": "4",
        "CONTACT_INTELLIGENCE_SHARDS_AT_ONCE": "2",
    }

    def run(*words):
        ended = subprocess.run(
            [AIRFLOW, *words], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert ended.returncode == 0, ended.stdout[-5000:]

    run("db", "migrate")
    return run, home / "shared"


def shard_process(shard, folder):
    """The process id of a run that reads this shard of this folder's plan; None if there is none."""
    for entry in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes().decode().split("\0")
        except OSError:
            continue
        if str(folder / "plan.jsonl") in words and shard in words and any("node" in word for word in words[:1]):
            return int(entry.parent.name)
    return None


def kill_once(shard, folder, killed):
    """Kills the run that reads a shard, once it has asked for rows."""
    for _ in range(6000):
        found = shard_process(shard, folder)
        if found is not None and list((folder / "rows").glob(f"shard-*-{shard}-*/people/.*")):
            os.kill(found, signal.SIGKILL)
            killed.append(found)
            return
        time.sleep(0.01)


def test_the_first_load_and_a_daily_run_bring_everyone_though_a_worker_dies(airflow, sandbox):
    run, folder = airflow
    killed = []
    killer = threading.Thread(target=kill_once, args=("1", folder, killed), daemon=True)
    killer.start()
    run("dags", "test", "contact_intelligence_first_load")
    assert len(killed) == 1
    assert newest_rows(folder / "rows") == {row["id"]: row for row in sandbox.call("people")}
    state = state_in(folder / "state.json")
    assert state["undated"] is not None
    assert all(len(span) == 3 for span in state["days"])

    sandbox.call("recheck", 40)
    sandbox.call("arrive", 7)
    before = len(sandbox.call("requests"))
    run("dags", "test", "contact_intelligence_daily")
    assert newest_rows(folder / "rows") == {row["id"]: row for row in sandbox.call("people")}
    exports = [request for request in sandbox.call("requests")[before:] if request["path"].endswith("/people/stream")]
    assert len(exports) == 1, "the daily run goes on from the merged state"


def test_the_page_names_the_variables_and_the_commands_of_the_dags():
    page = (ROOT / "docs" / "airflow.md").read_text()
    code = (ROOT / "deploy" / "airflow" / "contact_intelligence.py").read_text()
    for name in ("SHARED_FOLDER", "SHARDS", "SHARDS_AT_ONCE"):
        assert f"CONTACT_INTELLIGENCE_{name}" in page and f"CONTACT_INTELLIGENCE_{name}" in code
    for dag in ("contact_intelligence_first_load", "contact_intelligence_daily"):
        assert dag in page and f'dag_id="{dag}"' in code
