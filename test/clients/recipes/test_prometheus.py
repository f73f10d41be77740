"""The recipe of docs/cron.md, word for word, for a run that is complete and one that fails."""

import json
import os
import subprocess
import time

from prometheus_client.parser import text_string_to_metric_families
from sandbox_process import EXECUTABLE, Sandbox
from user_folder import blocks

LINE = blocks("cron", "cron.md")[-1].split(" * * * * ", 1)[1]


def test_what_a_run_did(tmp_path):
    (tmp_path / "source-contact-intelligence").symlink_to(EXECUTABLE)
    (tmp_path / "prometheus.py").write_text(blocks("python", "cron.md")[0])
    line = LINE.replace("/var/lib/contacts", str(tmp_path)).replace("/var/lib/node_exporter", str(tmp_path))
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}

    def metrics():
        subprocess.run(["/bin/sh", "-c", line], env=env, check=True, timeout=60)
        families = text_string_to_metric_families((tmp_path / "contacts.prom").read_text())
        return {(one.name, one.labels.get("stream")): one.value for family in families for one in family.samples}

    with Sandbox(people=30, undated=2, companies=4, requestsPerMinute=0) as sandbox:
        (tmp_path / "config.json").write_text(json.dumps(sandbox.config))
        complete = metrics()
        sandbox.call("fault", "status=401:times=always")
        failed = metrics()
    assert complete["contacts_run_complete", None] == 1
    assert complete["contacts_run_rows", "people"] == 32
    assert complete["contacts_run_rows", "companies"] == 4
    assert complete["contacts_run_missing_days", "people"] == 0
    assert complete["contacts_run_seconds", "people"] > 0
    assert failed["contacts_run_complete", None] == 0
    for run in (complete, failed):
        assert abs(time.time() - run["contacts_run_ended_timestamp_seconds", None]) < 600
