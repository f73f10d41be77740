"""A user's folder, with the program on the PATH and an empty database of PostgreSQL that the variables of psql name."""

import json
import subprocess

import pytest
from sandbox_process import Sandbox
from user_folder import path_with_program


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", path_with_program(tmp_path))
    subprocess.run(["createdb", tmp_path.name], check=True)
    monkeypatch.setenv("PGDATABASE", tmp_path.name)
    return tmp_path


def shell(script):
    """Whether a script succeeds."""
    return subprocess.run(["bash", "-euo", "pipefail", "-c", script], timeout=120).returncode == 0


def psql(script):
    """The rows that a script for PostgreSQL selects, each as a tuple of texts."""
    words = ["psql", "-qAt", "-F", "\t", "--pset=null=NULL", "-v", "ON_ERROR_STOP=1"]
    text = subprocess.run(words, input=script, check=True, stdout=subprocess.PIPE, text=True).stdout
    return [tuple(None if value == "NULL" else value for value in line.split("\t")) for line in text.splitlines()]


def serve(folder, people, **options):
    """A service, and the config file for it."""
    sandbox = Sandbox(people=people, undated=4, requestsPerMinute=0, **options)
    config = {**sandbox.config, "requests_per_minute": 6000}
    (folder / "config.json").write_text(json.dumps(config))
    return sandbox
