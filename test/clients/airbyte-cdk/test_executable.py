"""Airbyte's standard tests for an image, and the stricter ones for sources, which want a Python object: here it is a subprocess."""

import subprocess

import pytest
from airbyte_cdk.test import entrypoint_wrapper
from airbyte_cdk.test.standard_tests.docker_base import DockerConnectorTestSuite
from airbyte_cdk.test.standard_tests.source_base import SourceTestSuiteBase
from sandbox_process import EXECUTABLE


class Executable:
    """Stands where the tests expect a connector; it is never called."""

    def spec(self, logger):
        raise NotImplementedError


def run_executable(source, args, expected_outcome=None):
    ended = subprocess.run([str(EXECUTABLE), *args], capture_output=True, text=True)
    assert ended.stderr == ""
    failed = args[0] in ("read", "discover") and ended.returncode != 0
    output = entrypoint_wrapper.EntrypointOutput(command=args, messages=ended.stdout.splitlines())
    assert failed == bool(output.errors), "a failure has an ERROR trace and an exit code"
    return output


@pytest.fixture(autouse=True)
def subprocess_instead_of_import(monkeypatch):
    monkeypatch.setattr(entrypoint_wrapper, "_run_command", run_executable)


class TestExecutable(SourceTestSuiteBase):
    @classmethod
    def create_connector(cls, scenario):
        return Executable()


class TestImage(DockerConnectorTestSuite):
    pass


for name in dir(DockerConnectorTestSuite):
    if name.startswith("test_docker"):
        setattr(TestExecutable, name, None)
