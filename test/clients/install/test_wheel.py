"""The wheel, installed as README.md says and by the programs that people install it with, against the sandbox."""

import json
import os
import re
import signal
import subprocess
import sys
import zipfile

import pytest
from products import wheel
from sandbox_process import ROOT, Sandbox

COMMANDS = ["source-contact-intelligence", "tap-contact-intelligence", "contact-intelligence-sandbox"]
PEOPLE = 300
VERSION = json.loads((ROOT / "package.json").read_text())["version"]
# The programs are to run with the Node of the wheel, not with one of this machine.
BARE_PATH = "/usr/bin:/bin"


def output_of(*command, **options):
    ended = subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@pytest.fixture
def sandbox():
    with Sandbox(people=PEOPLE, requestsPerMinute=0) as running:
        yield running


@pytest.fixture
def config(sandbox, tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(sandbox.config))
    return path


def environment(folder):
    """A virtual environment; returns its folder of programs."""
    output_of(sys.executable, "-m", "venv", folder)
    return folder / "bin"


def assert_commands_work(folder, config, sandbox):
    env = {"PATH": BARE_PATH, "HOME": str(config.parent)}
    for name in COMMANDS:
        assert output_of(folder / name, "--version", env=env).strip() == VERSION
    lines = output_of(folder / COMMANDS[0], "read", "--config", config, "--stream", "people", "--format", "jsonl", env=env)
    assert len(lines.splitlines()) == len(sandbox.call("people"))
    messages = [json.loads(line) for line in output_of(folder / COMMANDS[1], "--config", config, env=env).splitlines()]
    assert sum(one["type"] == "RECORD" and one["stream"] == "people" for one in messages) == len(sandbox.call("people"))


def test_holds_the_bundle_and_nothing_else():
    names = zipfile.ZipFile(wheel()).namelist()
    odd = [name for name in names if not re.search(r"\.dist-info/|/program/(dist|schemas|meltano)/|/program/\w+(\.json)?$|/__\w+__\.py$", name)]
    assert odd == []
    assert os.path.getsize(wheel()) < 700_000


def test_pip_installs_the_commands_which_are_node_itself_so_that_signals_reach_them(config, sandbox, tmp_path):
    programs = environment(tmp_path / "venv")
    output_of(programs / "pip", "install", "--quiet", wheel())
    assert_commands_work(programs, config, sandbox)
    assert "What to do next:" in output_of(programs / COMMANDS[2], "demo", env={"PATH": BARE_PATH, "HOME": str(tmp_path)})
    module = output_of(programs / "python", "-m", "source_contact_intelligence", "spec")
    assert json.loads(module)["type"] == "SPEC"
    with subprocess.Popen([str(programs / COMMANDS[2]), "--port", "0"], stdout=subprocess.PIPE) as running:
        running.stdout.readline()
        running.send_signal(signal.SIGTERM)
        assert running.wait(timeout=20) == -signal.SIGTERM


def test_installs_from_a_clone_by_the_commands_of_the_page(config, sandbox, tmp_path):
    programs, clone = environment(tmp_path / "venv"), tmp_path / "clone"
    output_of("git", "clone", "--quiet", ROOT, clone)
    (commands,) = re.findall(r"^```sh\n((?:(?!```).)*?node scripts/wheel.js.*?)^```", (ROOT / "README.md").read_text(), re.M | re.S)
    env = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "npm_config_prefer_offline": "true"}
    output_of("bash", "-euo", "pipefail", "-c", commands, cwd=clone, env=env)
    assert_commands_work(programs, config, sandbox)


def test_pyairbyte_installs_it_by_pip_url(sandbox, tmp_path):
    import airbyte
    from airbyte.caches import DuckDBCache

    source = airbyte.get_source("source-contact-intelligence", config=sandbox.config, pip_url=wheel(), install_root=tmp_path)
    source.check()
    source.select_streams(["people"])
    cache = DuckDBCache(db_path=tmp_path / "warehouse.duckdb", cache_dir=tmp_path / "files")
    read = source.read(cache=cache)
    assert read.processed_records == len(sandbox.call("people"))
