"""The recipe of docs/cron.md, word for word, for a run that is complete, one that fails, and one whose key has lost its plan."""

import subprocess
import time

from conftest import serve
from prometheus_client.parser import text_string_to_metric_families
from user_folder import blocks

LINE = blocks("cron", "standalone.md")[-1].split(" * * * * ", 1)[1]


def test_what_a_run_did(folder):
    (folder / "prometheus.py").write_text(blocks("python", "standalone.md")[0])

    def metrics():
        line = LINE.replace("~/contacts", ".").replace("/var/lib/node_exporter", ".")
        subprocess.run(["/bin/sh", "-c", line], check=True, timeout=60)
        families = text_string_to_metric_families((folder / "contacts.prom").read_text())
        return {(one.name, one.labels.get("stream")): one.value for family in families for one in family.samples}

    with serve(folder, 30, companies=4) as sandbox:
        complete = metrics()
        sandbox.call("fault", "status=403:code=ENDPOINT_NOT_ON_PLAN:path=public/people:times=always")
        without_plan = metrics()
        sandbox.call("fault", "status=401:times=always")
        failed = metrics()
    assert complete["contacts_run_complete", None] == 1
    assert complete["contacts_run_rows", "people"] == 34
    assert complete["contacts_run_rows", "companies"] == 4
    assert complete["contacts_run_missing_days", "people"] == 0
    assert complete["contacts_run_seconds", "people"] > 0
    for run in (failed, without_plan):
        assert run["contacts_run_complete", None] == 0
    for run in (complete, failed, without_plan):
        assert abs(time.time() - run["contacts_run_ended_timestamp_seconds", None]) < 600
