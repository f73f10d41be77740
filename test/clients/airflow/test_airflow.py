"""The DAGs of deploy/airflow run under a real Airflow's scheduler, and a worker's process dies. Claims docs/airflow.md."""

import os
import pathlib
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time

import pytest
from sandbox_process import ROOT, Sandbox
from shard_rows import newest_rows, state_of_people
from user_folder import account, blocks, path_with_program

AIRFLOW = pathlib.Path(sys.executable).with_name("airflow")


@pytest.fixture
def sandbox():
    with Sandbox(people=20_003, undated=11, companies=30, days=400, requestsPerMinute=0, bytesPerSecond=300_000) as service:
        yield service


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


class Airflow:
    """An Airflow with a home of its own, the DAGs of this project, the program on the PATH, and its services running."""

    def __init__(self, home, sandbox):
        self.home, self.shared, self.services = home, home / "shared", []
        path = path_with_program(home)
        shutil.copytree(ROOT / "deploy" / "airflow", home / "dags")
        port = free_port()
        self.environment = {
            **os.environ,
            "PATH": f"{AIRFLOW.parent}:{path}",
            "HOME": str(home),
            "AIRFLOW_HOME": str(home),
            "AIRFLOW__CORE__DAGS_FOLDER": str(home / "dags"),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{port}/execution/",
            "AIRFLOW__API__PORT": str(port),
            "AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": str(free_port()),
            **account(sandbox),
            "CONTACT_INTELLIGENCE_SHARED_FOLDER": str(self.shared),
            "CONTACT_INTELLIGENCE_SHARDS": "4",
            "CONTACT_INTELLIGENCE_SHARDS_AT_ONCE": "2",
            "CONTACT_INTELLIGENCE_STREAMS": "people companies",
        }

    def __enter__(self):
        self.run("db", "migrate")
        for name, *words in (["api-server", "--workers", "1"], ["dag-processor"], ["scheduler"]):
            log = (self.home / f"{name}.log").open("w")
            how = {"stdout": log, "stderr": subprocess.STDOUT, "start_new_session": True}
            self.services.append(subprocess.Popen([AIRFLOW, name, *words], env=self.environment, **how))
        self.until(lambda: len(self.ask("SELECT dag_id FROM dag")) == 4, "the DAGs are known")
        return self

    def __exit__(self, *_):
        for service in self.services:
            os.killpg(service.pid, signal.SIGKILL)
            service.wait()

    def run(self, *words):
        subprocess.run([AIRFLOW, *words], env=self.environment, check=True, timeout=120)

    def ask(self, query, *values):
        with sqlite3.connect(self.home / "airflow.db", timeout=30) as database:
            return database.execute(query, values).fetchall()

    def until(self, condition, what, seconds=240):
        for _ in range(seconds * 2):
            if condition():
                return
            assert all(service.poll() is None for service in self.services), self.logs()
            time.sleep(0.5)
        raise AssertionError(f"gave up waiting: {what}\n{self.logs()}")

    def expect(self, dag, *states):
        """Waits until all runs of a DAG have ended, in these states."""
        query = "SELECT state FROM dag_run WHERE dag_id = ? AND state IN ('success', 'failed') ORDER BY id"
        self.until(lambda: len(self.ask(query, dag)) == len(states), f"{dag} ends")
        assert [state for (state,) in self.ask(query, dag)] == [*states], self.logs()

    def logs(self):
        files = [*self.home.glob("*.log"), *self.home.glob("logs/dag_id=*/**/*.log")]
        return "\n".join(f"{file}\n{file.read_text()[-1500:]}" for file in files)


@pytest.fixture
def airflow(sandbox, tmp_path):
    with Airflow(tmp_path, sandbox) as running:
        yield running


def kill_once(shard, folder, killed):
    """Kills the run that reads a shard of this folder's plan, once it has asked for rows."""
    for _ in range(12_000):
        time.sleep(0.01)
        if not list((folder / "contacts").glob(f"shard-*-{shard}-*/people/.*")):
            continue
        pattern = f"^[^ ]*node .*{folder}/plan-[^ ]+ --shard {shard} "
        found = subprocess.run(["pgrep", "-f", pattern], stdout=subprocess.PIPE, text=True).stdout.split()
        for pid in found:
            os.kill(int(pid), signal.SIGKILL)
        killed += found
        if found:
            return


def exports(sandbox):
    return sum(request["path"].endswith("/people/stream") for request in sandbox.call("requests"))


def test_the_page_brings_everyone_though_a_worker_dies(airflow, sandbox):
    folder, killed = airflow.shared, []
    threading.Thread(target=kill_once, args=("1", folder, killed), daemon=True).start()
    first_load, unpause = [command.split()[1:] for command in blocks("sh", "airflow.md")[:2]]
    airflow.run(*first_load)
    airflow.expect("contact_intelligence_first_load", "success")
    assert len(killed) == 1
    assert newest_rows(folder / "contacts") == {row["id"]: row for row in sandbox.call("people")}
    state = state_of_people(folder / "state.json")
    assert state["undated"] is not None
    assert all(span["status"] == "proven" for span in state["days"])

    sandbox.call("recheck", 40)
    sandbox.call("arrive", 7)
    before = exports(sandbox)
    airflow.run(*unpause)
    airflow.expect("contact_intelligence_daily", "success")
    assert newest_rows(folder / "contacts") == {row["id"]: row for row in sandbox.call("people")}
    assert len(newest_rows(folder / "contacts", "companies", "domain")) == 30, "one setting decides what is read"
    assert exports(sandbox) == before + 1, "the daily run goes on from the merged state"

    # A key that may not read one of the streams: only a person can mend that, so nothing is tried again.
    sandbox.call("fault", "status=403:code=ENTERPRISE_REQUIRED:times=always:path=/companies")
    before = exports(sandbox)
    airflow.run("dags", "trigger", "contact_intelligence_daily")
    airflow.expect("contact_intelligence_daily", "success", "failed")
    assert exports(sandbox) <= before + 1
    tries = airflow.ask("SELECT max(try_number) FROM task_instance WHERE dag_id = 'contact_intelligence_daily'")
    assert tries == [(1,)]


def test_the_page_names_the_variables_and_the_dags():
    page = (ROOT / "docs" / "airflow.md").read_text()
    code = "".join(path.read_text() for path in (ROOT / "deploy" / "airflow").glob("*.py"))
    for name in ("SHARED_FOLDER", "SHARDS", "SHARDS_AT_ONCE", "STREAMS", "IMAGE"):
        assert f"CONTACT_INTELLIGENCE_{name}" in page and f"CONTACT_INTELLIGENCE_{name}" in code
    for dag in re.findall(r'dag_id="(\w+)"', code):
        assert dag in page
