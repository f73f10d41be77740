"""The steps of a first load over a bucket of a real S3 server, which rclone reaches, without any volume. Claims docs/kubernetes.md."""

import pathlib
import re
import shutil
import subprocess
import sys
import time

import pytest
from conftest import FOLDER, STEPS, pod, served, shell
from shard_rows import newest_rows, rows_of, state_of_people

BUCKET_STEPS = FOLDER / "bucket" / "settings" / "bucket.sh"
MOTO = pathlib.Path(sys.executable).with_name("moto_server")

if shutil.which("rclone") is None:
    pytest.skip("rclone is not installed", allow_module_level=True)


@pytest.fixture(scope="module")
def s3(tmp_path_factory):
    log = tmp_path_factory.mktemp("s3") / "log"
    with log.open("w") as output:
        server = subprocess.Popen([MOTO, "-H", "127.0.0.1", "-p", "0"], stdout=output, stderr=output)
    try:
        found = None
        while found is None and server.poll() is None:
            time.sleep(0.1)
            found = re.search(r"http://127\.0\.0\.1:[1-9]\d*", log.read_text())
        yield found[0]
    finally:
        server.terminate()
        server.wait(timeout=10)


class Pods:
    """Each pod has a folder of its own, which is gone when the pod has ended."""

    def __init__(self, home, sandbox, s3):
        self.home, self.count, self.bucket = home, 0, f"bucket:{home.name.replace('_', '-')}"
        remote = {"TYPE": "s3", "PROVIDER": "Other", "ENDPOINT": s3, "ACCESS_KEY_ID": "a", "SECRET_ACCESS_KEY": "b"}
        self.environment = {
            **pod(sandbox, home / "data"),
            **{f"RCLONE_CONFIG_BUCKET_{name}": value for name, value in {**remote, "REGION": "us-east-1"}.items()},
            **{"HOME": str(home), "BUCKET": self.bucket.split(":")[1], "SHARDS_AT_ONCE": "4"},
            **{"STEPS": str(STEPS.parent), "WAIT": "1", "CODE_FILE": str(home / "data" / "code")},
        }
        self.rclone("mkdir", self.bucket)

    def rclone(self, *words):
        subprocess.run(["rclone", *words], env=self.environment, check=True)

    def run(self, job, push=(), **more):
        """The exit code of a pod's containers, one after the other, and what they said."""
        self.count += 1
        data = self.home / "data"
        data.mkdir()
        pod_of = {"JOB": f"contact-intelligence-{job}", "TRY": f"try-{self.count}", "JOB_UID": f"{self.count}"}
        all_said = ""
        step = job.replace("shards", "shard")
        for script, step, changes in ((BUCKET_STEPS, "pull", ()), (STEPS, step, ()), (BUCKET_STEPS, "push", push)):
            code, said = shell(script, step, {**self.environment, **pod_of, **more, **dict(changes)})
            all_said += said
            if code != 0:
                break
        shutil.rmtree(data)
        return code, all_said

    def expect(self, job, **more):
        """Runs a pod that must succeed."""
        code, said = self.run(job, **more)
        assert code == 0, said

    def copy(self):
        """A copy of what the bucket holds."""
        self.rclone("sync", self.bucket, str(self.home / "here"))
        return self.home / "here"


@pytest.fixture
def pods(tmp_path, sandbox, s3):
    return Pods(tmp_path, sandbox, s3)


def test_everyone_is_in_the_bucket_once_though_an_upload_breaks_and_a_shard_is_read_twice(pods, sandbox):
    for _ in ("a plan", "a plan that is there is kept"):
        pods.expect("plan")
    broken = {"RCLONE_MAX_TRANSFER": "1k", "RCLONE_RETRIES": "1"}
    assert pods.run("shards", push=broken, JOB_COMPLETION_INDEX="0")[0] != 0, "the upload broke"
    assert not list(pods.copy().glob("plans/first/done/*"))
    for index in ("1", "0", "0", "2"):
        pods.expect("shards", JOB_COMPLETION_INDEX=index)
    assert sorted(path.name for path in pods.copy().glob("plans/first/done/*")) == ["0", "1"]
    pods.expect("finish")
    here = pods.copy()
    tries = [path.read_text().strip() for path in here.glob("plans/first/done/*")]
    rows = [row for name in tries for path in here.glob(f"contacts/{name}/people/*.gz") for row in rows_of(path)]
    assert len(rows) == len(served(sandbox)) and {row["id"]: row for row in rows} == served(sandbox)
    assert state_of_people(here / "state.json")["undated"] is not None

    sandbox.call("recheck", 5)
    sandbox.call("arrive", 3)
    for _ in range(2):
        pods.expect("daily")
    assert newest_rows(pods.copy() / "contacts") == served(sandbox)


def test_a_lost_file_is_said_by_the_finish_step(pods):
    pods.expect("plan")
    for index in "01":
        pods.expect("shards", JOB_COMPLETION_INDEX=index)
    lost = next(path for path in pods.copy().glob("contacts/*-1-*/*/people/*.gz")).relative_to(pods.home / "here")
    pods.rclone("deletefile", f"{pods.bucket}/{lost}")
    code, said = pods.run("finish")
    assert code == 2 and f"{lost} is not there" in said
