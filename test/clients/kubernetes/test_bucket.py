"""The steps of a first load over a bucket of a real S3 server, without any volume. Claims docs/kubernetes.md.

Needs rclone, Debian's package of that name, and skips without it.
"""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest
from sandbox_process import EXECUTABLE, ROOT, Sandbox
from shard_rows import newest_rows, rows_of, state_in
from user_folder import account

SETUP = ROOT / "deploy" / "kubernetes" / "setup"
BUCKET_STEPS = ROOT / "deploy" / "kubernetes" / "bucket" / "settings" / "bucket.sh"
MOTO = pathlib.Path(sys.executable).with_name("moto_server")

if shutil.which("rclone") is None:
    pytest.skip("rclone is not installed", allow_module_level=True)


@pytest.fixture(scope="module")
def sandbox():
    with Sandbox(people=300, undated=3, days=100, requestsPerMinute=0) as service:
        yield service


@pytest.fixture(scope="module")
def s3(tmp_path_factory):
    log = tmp_path_factory.mktemp("s3") / "log"
    with log.open("w") as output:
        server = subprocess.Popen([MOTO, "-H", "127.0.0.1", "-p", "0"], stdout=output, stderr=output)
    try:
        for _ in range(300):
            found = re.search(r"http://127\.0\.0\.1:[1-9]\d*", log.read_text())
            if found:
                break
            time.sleep(0.1)
        yield found[0]
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(timeout=10)


class Pods:
    """Each pod has a folder of its own, which is gone when the pod has ended."""

    def __init__(self, home, sandbox, s3):
        self.home, self.count = home, 0
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "RCLONE_CONFIG_BUCKET_TYPE": "s3",
            "RCLONE_CONFIG_BUCKET_PROVIDER": "Other",
            "RCLONE_CONFIG_BUCKET_ENDPOINT": s3,
            "RCLONE_CONFIG_BUCKET_ACCESS_KEY_ID": "a",
            "RCLONE_CONFIG_BUCKET_SECRET_ACCESS_KEY": "b",
            "RCLONE_CONFIG_BUCKET_REGION": "us-east-1",
            "BUCKET": home.name.replace("_", "-"),
            "AIRBYTE_ENTRYPOINT": f"node {EXECUTABLE}",
            **account(sandbox),
            **{"PLAN": "first", "SHARDS": "3", "COMPLETIONS": "3", "STREAMS": "people", "SHARDS_AT_ONCE": "4"},
            **{"STEPS": str(SETUP), "WAIT": "1"},
        }
        self.rclone("mkdir", f"bucket:{self.environment['BUCKET']}")

    def rclone(self, *words):
        done = subprocess.run(["rclone", *words], env=self.environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def run(self, job, push=(), **more):
        """The exit code of a pod's containers, one after the other, and what they said."""
        self.count += 1
        data = self.home / f"pod-{self.count}"
        data.mkdir()
        environment = {
            **self.environment,
            **{"JOB": f"contact-intelligence-{job}", "DATA": str(data), "TRY": f"try-{self.count}", "JOB_UID": f"{self.count}"},
            **{"CODE_FILE": str(data / "code"), **more},
        }
        said = ""
        step = {"plan": "plan", "shards": "shard", "finish": "finish", "daily": "daily"}[job]
        for words, changes in (
            ([BUCKET_STEPS, "pull"], {}),
            ([SETUP / "steps.sh", step], {}),
            ([BUCKET_STEPS, "push"], dict(push)),
        ):
            done = subprocess.run(
                ["sh", *words], env={**environment, **changes}, capture_output=True, text=True, timeout=60
            )
            said += done.stderr
            if done.returncode != 0:
                break
        shutil.rmtree(data)
        return done.returncode, said

    def bucket(self):
        """A copy of what the bucket holds."""
        here = self.home / "here"
        self.rclone("sync", f"bucket:{self.environment['BUCKET']}", str(here))
        return here


def test_everyone_is_in_the_bucket_once_though_an_upload_breaks_and_a_shard_is_read_twice(sandbox, s3, tmp_path):
    pods = Pods(tmp_path, sandbox, s3)
    assert pods.run("plan")[0] == 0
    assert pods.run("plan")[0] == 0, "a plan that is there is kept"
    code, said = pods.run("shards", push={"RCLONE_MAX_TRANSFER": "1k", "RCLONE_RETRIES": "1"}, JOB_COMPLETION_INDEX="0")
    assert code != 0, "the upload broke"
    assert not list(pods.bucket().glob("plans/first/done/*"))
    for index in ("1", "0", "0", "2"):
        code, said = pods.run("shards", JOB_COMPLETION_INDEX=index)
        assert code == 0, said
    assert sorted(path.name for path in pods.bucket().glob("plans/first/done/*")) == ["0", "1"]
    code, said = pods.run("finish")
    assert code == 0, said
    here = pods.bucket()
    tries = [path.read_text().strip() for path in here.glob("plans/first/done/*")]
    rows = [row for name in tries for path in here.glob(f"rows/{name}/people/*.gz") for row in rows_of(path)]
    served = {row["id"]: row for row in sandbox.call("people")}
    assert len(rows) == len(served) and {row["id"]: row for row in rows} == served
    assert state_in(here / "state.json")["undated"] is not None

    sandbox.call("recheck", 5)
    sandbox.call("arrive", 3)
    for _ in range(2):
        code, said = pods.run("daily")
        assert code == 0, said
    assert newest_rows(pods.bucket() / "rows") == {row["id"]: row for row in sandbox.call("people")}


def test_a_failure_and_a_lost_file_are_said_by_the_finish_step(sandbox, s3, tmp_path):
    pods = Pods(tmp_path, sandbox, s3)
    assert pods.run("plan")[0] == 0
    assert pods.run("shards", JOB_COMPLETION_INDEX="1", CONTACT_INTELLIGENCE_API_KEY="svc_00000000_" + "0" * 32)[0] == 2
    code, said = pods.run("finish")
    assert code == 2 and "shard 1 failed with exit code 2. Try 1 of 9, the last" in said
    for index in "01":
        assert pods.run("shards", JOB_COMPLETION_INDEX=index)[0] == 0
    lost = next(path for path in pods.bucket().glob("rows/*-1-*/*/people/*.gz")).relative_to(pods.home / "here")
    pods.rclone("deletefile", f"bucket:{pods.environment['BUCKET']}/{lost}")
    code, said = pods.run("finish")
    assert code == 2 and f"{lost} is not there" in said
