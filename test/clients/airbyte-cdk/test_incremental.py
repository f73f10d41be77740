"""The scenario `incremental` of acceptance-test-config.yml and the expected records, which Airbyte's CDK no longer reads."""

import json
import subprocess

import pytest
import yaml
from sandbox_process import EXECUTABLE, ROOT

CONFIG = yaml.safe_load((ROOT / "acceptance-test-config.yml").read_text())
(SCENARIO,) = CONFIG["acceptance_tests"]["incremental"]["tests"]
CATALOG = ROOT / SCENARIO["configured_catalog_path"]
INCREMENTAL = [
    each["stream"]["name"]
    for each in json.loads(CATALOG.read_text())["streams"]
    if each["sync_mode"] == "incremental"
]


def read(*state):
    """The records by stream, and the last state of each stream."""
    words = ["read", "--config", ROOT / SCENARIO["config_path"], "--catalog", CATALOG]
    words += [word for path in state for word in ("--state", path)]
    ended = subprocess.run([EXECUTABLE, *words], capture_output=True, text=True, check=True)
    messages = [json.loads(line) for line in ended.stdout.split("\n") if line]
    records, states = {}, {}
    for message in messages:
        if message["type"] == "RECORD":
            records.setdefault(message["record"]["stream"], []).append(message["record"]["data"])
        if message["type"] == "STATE":
            states[message["state"]["stream"]["stream_descriptor"]["name"]] = {
                "type": "STREAM",
                "stream": message["state"]["stream"],
            }
    return records, states


@pytest.fixture(scope="module")
def first():
    return read()


def test_reads_the_expected_records(first):
    records, _ = first
    for line in (ROOT / "integration_tests/expected_records.jsonl").read_text().splitlines():
        expected = json.loads(line)
        found = [row for row in records[expected["stream"]] if {**row, **expected["data"]} == row]
        assert len(found) == 1, line


def test_goes_on_from_its_own_state(first, tmp_path):
    records, states = first
    saved = tmp_path / "state.json"
    saved.write_text(json.dumps(list(states.values())))
    again, _ = read(saved)
    for name in INCREMENTAL:
        assert len(again.get(name, [])) < len(records[name]) / 10


def test_reads_what_may_be_new_from_a_state_of_the_future(first):
    records, states = read(ROOT / SCENARIO["future_state"]["future_state_path"])
    everything, _ = first
    for name in INCREMENTAL:
        assert len(records.get(name, [])) < len(everything[name])
        assert states[name]["stream"]["stream_state"]["discoveredAt"] < "2900"
