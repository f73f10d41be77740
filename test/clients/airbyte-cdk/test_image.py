"""Airbyte's standard tests for an image, whatever language is in it."""

from airbyte_cdk.test.standard_tests.docker_base import DockerConnectorTestSuite


class TestImage(DockerConnectorTestSuite):
    pass
