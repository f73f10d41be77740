"""Starts the sandbox, writes the configs that acceptance-test-config.yml names, and builds the image."""

import json
import shutil

from products import image
from sandbox_process import ROOT, Sandbox

pytest_plugins = ["airbyte_cdk.test.standard_tests.pytest_hooks"]

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
        config.option.connector_image = image()
        config.option.read_from_streams = "all"


def pytest_unconfigure():
    for sandbox in running:
        sandbox.stop()
