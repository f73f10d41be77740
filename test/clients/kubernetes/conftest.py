"""What the suite shares: the manifests, a service, and the steps of a first load as a pod runs them."""

import os
import subprocess

import pytest
from sandbox_process import EXECUTABLE, ROOT, Sandbox
from user_folder import account

FOLDER = ROOT / "deploy" / "kubernetes"
STEPS = FOLDER / "setup" / "steps.sh"
PAGE = (ROOT / "docs" / "kubernetes.md").read_text()


@pytest.fixture(scope="module")
def sandbox():
    with Sandbox(people=300, undated=3, days=100, requestsPerMinute=0) as service:
        yield service


def pod(sandbox, data):
    """The environment of a pod with this folder in place of the volume."""
    plan = {"PLAN": "first", "SHARDS": "3", "COMPLETIONS": "3", "STREAMS": "people", "SHARDS_AT_ONCE": "1"}
    program = {"PATH": os.environ["PATH"], "AIRBYTE_ENTRYPOINT": f"node {EXECUTABLE}"}
    return {**program, **account(sandbox), **plan, "DATA": str(data)}


def shell(script, step, environment):
    """The exit code of a step, and what it said."""
    ended = subprocess.run(["sh", script, step], env=environment, capture_output=True, text=True, timeout=60)
    return ended.returncode, ended.stderr


def served(sandbox):
    return {row["id"]: row for row in sandbox.call("people")}
