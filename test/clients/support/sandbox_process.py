"""The sandbox, driven from Python. The program must have been built."""

import json
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).parents[3]
EXECUTABLE = ROOT / "dist" / "source-contact-intelligence.js"


class Sandbox:
    """A sandbox in a process of its own; what it can do is in sandbox/server.ts."""

    def __init__(self, **options):
        self._process = subprocess.Popen(
            ["node", str(pathlib.Path(__file__).with_name("sandbox-process.js")), json.dumps(options)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started = self._answer()
        self.url, self.key, self.port = started["url"], started["key"], started["port"]

    def _answer(self):
        return json.loads(self._process.stdout.readline())

    def call(self, control, *arguments):
        self._process.stdin.write(json.dumps([control, *arguments]) + "\n")
        self._process.stdin.flush()
        return self._answer()

    @property
    def config(self):
        return {"base_url": self.url, "api_key": self.key}

    def stop(self):
        self._process.stdin.close()
        self._process.wait(timeout=10)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
