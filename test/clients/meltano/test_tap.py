"""The Singer SDK's own tests for taps, on the executable tap, which stands there as a tap of the SDK."""

import json
import os
import subprocess

from singer_sdk import Stream, Tap
from singer_sdk.testing import SuiteConfig, get_tap_test_class


def call(*flags):
    command = [os.environ["TAP"], "--config", os.environ["TAP_CONFIG"], *flags]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, encoding="utf-8").stdout


class ExecutableStream(Stream):
    def __init__(self, tap, entry):
        self.entry = entry
        super().__init__(tap, schema=entry["schema"], name=entry["stream"])
        self.primary_keys = entry.get("key_properties") or []
        self.replication_key = entry.get("replication_key")

    def get_records(self, context):
        for item in self.entry["metadata"]:
            if not item["breadcrumb"]:
                item["metadata"]["selected"] = True
        with open(f"catalog-{self.name}.json", "w") as catalog:
            json.dump({"streams": [self.entry]}, catalog)
        # Not splitlines(), which takes U+2028 inside a record for the end of its line.
        for line in call("--catalog", catalog.name).split("\n"):
            if line:
                message = json.loads(line)
                if message["type"] == "RECORD" and message["stream"] == self.name:
                    yield message["record"]


class ExecutableTap(Tap):
    name = "tap-contact-intelligence"
    config_jsonschema = {"type": "object", "properties": {}}

    def discover_streams(self):
        return [ExecutableStream(self, entry) for entry in json.loads(call("--discover"))["streams"]]


TestTap = get_tap_test_class(ExecutableTap, config={}, suite_config=SuiteConfig(max_records_limit=500))
