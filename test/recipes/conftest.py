"""A user's folder with files of two runs: people who were checked again stand in both."""

import json
import os
import subprocess

import pytest
from sandbox_process import EXECUTABLE, ROOT, Sandbox


def blocks(language):
    """The blocks of docs/files.md in one language, in order."""
    text = (ROOT / "docs" / "files.md").read_text()
    return [part.split("\n```", 1)[0] for part in text.split(f"```{language}\n")[1:]]


def shell(script, folder, **env):
    subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=folder, env={**os.environ, **env}, check=True)


@pytest.fixture
def contacts(tmp_path):
    """Where the files are, and the people that the service has."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "source-contact-intelligence").symlink_to(EXECUTABLE)
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    with Sandbox(people=300, undated=4, requestsPerMinute=0) as sandbox:
        (tmp_path / "config.json").write_text(json.dumps({**sandbox.config, "requests_per_minute": 6000}))
        shell(blocks("sh")[0], tmp_path, PATH=path)
        sandbox.call("arrive", 5)
        sandbox.call("recheck", 7)
        shell(blocks("sh")[0], tmp_path, PATH=path)
        people = {person["id"]: person for person in sandbox.call("people")}
    files = sorted((tmp_path / "contacts" / "people").iterdir())
    assert len(files) == 2
    assert sum(len(file.read_text().splitlines()) for file in files) > len(people)
    return tmp_path, people
