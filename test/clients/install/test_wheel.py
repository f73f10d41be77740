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
MELTANO = re.search(r"meltano==[\d.]+", (ROOT / "docs/meltano.md").read_text())[0]
# The programs are to run with the Node of the wheel, not with one of this machine.
BARE_PATH = "/usr/bin:/bin"
UV = ROOT / ".cache" / "uv" / "bin" / "uv"


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


def program(name, requirement):
    """A program in a virtual environment of its own, which is made once."""
    folder = ROOT / ".cache" / "clients" / f"install-{name}"
    if not (folder / "bin" / name).exists():
        output_of(UV, "venv", "--python", sys.executable, folder)
        output_of(UV, "pip", "install", "--python", folder, requirement)
    return folder / "bin" / name


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


def test_pipx_installs_the_commands(config, sandbox, tmp_path):
    folders = {"PIPX_HOME": str(tmp_path / "pipx"), "PIPX_BIN_DIR": str(tmp_path / "bin"), "PIPX_MAN_DIR": str(tmp_path / "man")}
    output_of(program("pipx", "pipx==1.8.0"), "install", wheel(), env={**os.environ, **folders})
    assert_commands_work(tmp_path / "bin", config, sandbox)


def test_pyairbyte_installs_it_by_pip_url(sandbox, tmp_path):
    import airbyte
    from airbyte.caches import DuckDBCache

    source = airbyte.get_source("source-contact-intelligence", config=sandbox.config, pip_url=wheel(), install_root=tmp_path)
    source.check()
    source.select_streams(["people"])
    cache = DuckDBCache(db_path=tmp_path / "warehouse.duckdb", cache_dir=tmp_path / "files")
    read = source.read(cache=cache)
    assert read.processed_records == len(sandbox.call("people"))


def test_meltano_installs_it_by_pip_url(sandbox, tmp_path):
    meltano, project = program("meltano", MELTANO), tmp_path / "contacts"
    env = {**os.environ, "MELTANO_SEND_ANONYMOUS_USAGE_STATS": "false"}
    output_of(meltano, "init", project, "--no-usage-stats", env=env)
    extractor = {
        "name": COMMANDS[1],
        "namespace": "tap_contact_intelligence",
        "pip_url": wheel(),
        "executable": COMMANDS[1],
        "capabilities": ["catalog", "discover", "state", "about"],
        "settings": [{"name": "base_url"}, {"name": "api_key", "sensitive": True}],
        "config": sandbox.config,
    }
    loader = {
        "name": "target-jsonl",
        "namespace": "target_jsonl",
        "pip_url": "target-jsonl==0.1.4",
        "executable": "target-jsonl",
        "settings": [{"name": "destination_path"}, {"name": "do_timestamp_file", "kind": "boolean"}],
        "config": {"destination_path": "output", "do_timestamp_file": False},
    }
    # JSON is YAML.
    definition = {"version": 1, "default_environment": "dev", "environments": [{"name": "dev"}]}
    plugins = {"extractors": [extractor], "loaders": [loader]}
    (project / "meltano.yml").write_text(json.dumps({**definition, "plugins": plugins}))
    output_of(meltano, "install", cwd=project, env=env)
    output_of(meltano, "run", COMMANDS[1], "target-jsonl", cwd=project, env=env)
    rows = (project / "output" / "people.jsonl").read_text().splitlines()
    assert len(rows) == len(sandbox.call("people"))
