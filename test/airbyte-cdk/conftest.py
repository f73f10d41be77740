"""Starts the sandbox, writes the configs that acceptance-test-config.yml names, and builds the image."""

import json
import re
import shutil
import subprocess

from sandbox_process import ROOT, Sandbox

pytest_plugins = ["airbyte_cdk.test.standard_tests.pytest_hooks"]

METADATA = (ROOT / "metadata.yaml").read_text()
IMAGE = ":".join(re.search(rf"^  {name}: (\S+)$", METADATA, re.M)[1] for name in ("dockerRepository", "dockerImageTag"))

running = []


def pytest_configure(config):
    sandbox = Sandbox(people=800, requestsPerMinute=0)
    running.append(sandbox)
    configs = ROOT / ".cache" / "airbyte-cdk-configs"
    configs.mkdir(parents=True, exist_ok=True)
    (configs / "config.json").write_text(json.dumps(sandbox.config))
    wrong = {**sandbox.config, "api_key": "svc_00000000_0123456789abcdef0123456789abcdef"}
    (configs / "invalid_config.json").write_text(json.dumps(wrong))
    if shutil.which("docker") is not None:
        subprocess.run(["node", str(ROOT / "scripts/image.js")], check=True, capture_output=True)
        config.option.connector_image = IMAGE
        config.option.read_from_streams = "all"


def pytest_unconfigure():
    for sandbox in running:
        sandbox.stop()
