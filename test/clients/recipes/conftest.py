"""A user's folder with files of two runs: people who were checked again stand in both."""

import json
import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest
from sandbox_process import Sandbox
from user_folder import blocks, path_with_program


def shell(script, folder, **env):
    subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=folder, env={**os.environ, **env}, check=True)


@pytest.fixture
def contacts(tmp_path):
    """Where the files are, and the people that the service has."""
    path = path_with_program(tmp_path)
    with Sandbox(people=300, undated=4, requestsPerMinute=0) as sandbox:
        (tmp_path / "config.json").write_text(json.dumps({**sandbox.config, "requests_per_minute": 6000, "proof_stream": True}))
        shell(blocks("sh")[0], tmp_path, PATH=path)
        sandbox.call("arrive", 5)
        sandbox.call("recheck", 7)
        shell(blocks("sh")[0], tmp_path, PATH=path)
        refresh = blocks("sh")[0].strip() + " --full-refresh --stream companies --stream sources"
        shell(refresh, tmp_path, PATH=path)
        people = {person["id"]: person for person in sandbox.call("people")}
    files = sorted((tmp_path / "contacts" / "people").iterdir())
    assert len(files) == 2
    assert sum(len(file.read_text().splitlines()) for file in files) > len(people)
    return tmp_path, people


def postgres_programs():
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return versions[-1].parent if versions else None


@pytest.fixture
def postgres():
    """The settings of psql for a cluster that is there for one test."""
    programs = postgres_programs()
    if programs is None or shutil.which("psql") is None:
        pytest.skip("Debian's package postgresql is not installed")
    user = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []
    with tempfile.TemporaryDirectory() as home, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        if user:
            shutil.chown(home, "postgres", "postgres")

        def call(name, *args):
            subprocess.run([*user, str(programs / name), *args], cwd=home, check=True, stdout=subprocess.DEVNULL)

        call("initdb", "-D", f"{home}/cluster", "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--no-sync")
        options = f"-p {port} -k {home} -c listen_addresses=127.0.0.1 -c fsync=off"
        call("pg_ctl", "-D", f"{home}/cluster", "-w", "-l", f"{home}/log", "-o", options, "start")
        yield {"PGHOST": "127.0.0.1", "PGPORT": str(port), "PGUSER": "postgres", "PGDATABASE": "postgres"}
        call("pg_ctl", "-D", f"{home}/cluster", "-m", "immediate", "stop")
