"""The files that describe the connector, under the validators of the platforms that read them."""

import yaml
from airbyte_connector_models.metadata.v0.connector_metadata_definition_v0 import ConnectorMetadataDefinitionV0
from sandbox_process import ROOT
from yamllint import linter
from yamllint.config import YamlLintConfig

# What meltano/hub lints its definitions for.
HUB_LINT = """
extends: default
rules:
  braces: {forbid: non-empty}
  document-start: {present: false}
  indentation: {indent-sequences: false, spaces: 2}
  key-ordering: enable
  line-length: disable
  truthy: disable
"""


def test_metadata_is_what_airbyte_takes():
    ConnectorMetadataDefinitionV0.model_validate(yaml.safe_load((ROOT / "metadata.yaml").read_text()))


def test_definitions_pass_the_lint_of_the_hub():
    definitions = list((ROOT / "meltano").rglob("*.yml"))
    assert len(definitions) == 2
    for path in definitions:
        assert [str(problem) for problem in linter.run(path.read_text(), YamlLintConfig(HUB_LINT))] == []
