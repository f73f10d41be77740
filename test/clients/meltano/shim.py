"""The executable tap as a tap of the Singer SDK, so that the SDK's own test suite can drive it."""

import json
import os
import subprocess
import tempfile

from singer_sdk import Stream, Tap


def written(value):
    with tempfile.NamedTemporaryFile("w", suffix=".json", delete=False) as file:
        json.dump(value, file)
    return file.name


def call(config, *flags):
    command = [os.environ["TAP"], "--config", written(dict(config)), *flags]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, encoding="utf-8").stdout


class ExecutableStream(Stream):
    def __init__(self, tap, entry):
        self.entry = entry
        super().__init__(tap, schema=entry["schema"], name=entry["stream"])
        self.primary_keys = entry.get("key_properties") or []
        self.replication_key = entry.get("replication_key")

    def get_records(self, context):
        entry = json.loads(json.dumps(self.entry))
        for item in entry["metadata"]:
            if not item["breadcrumb"]:
                item["metadata"]["selected"] = True
        # Not splitlines(), which takes U+2028 inside a record for the end of its line.
        for line in call(self.config, "--catalog", written({"streams": [entry]})).split("\n"):
            if line:
                message = json.loads(line)
                if message["type"] == "RECORD" and message["stream"] == self.name:
                    yield message["record"]


class ExecutableTap(Tap):
    name = "tap-contact-intelligence"
    config_jsonschema = {"type": "object", "properties": {}}

    def discover_streams(self):
        catalog = json.loads(call(self.config, "--discover"))
        return [ExecutableStream(self, entry) for entry in catalog["streams"]]
