"""What linters of others say of the files that the repository has beside its source, and of the wheel."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from products import wheel
from sandbox_process import ROOT

PROGRAMS = Path(sys.executable).parent


def files_like(*patterns):
    listed = subprocess.run(["git", "ls-files", "--", *patterns], cwd=ROOT, capture_output=True, text=True, check=True)
    return listed.stdout.split()


def assert_silent(*command):
    ended = subprocess.run([str(word) for word in command], cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_zizmor_finds_nothing_in_the_workflows():
    assert_silent(PROGRAMS / "zizmor", "--offline", "--persona", "regular", ".github")


@pytest.mark.skipif("TEST_NIGHTLY" not in os.environ, reason="it is built by Go, at night")
def test_actionlint_finds_nothing_in_the_workflows():
    home = ROOT / ".cache" / "tools-go"
    module = "github.com/rhysd/actionlint/cmd/actionlint@v1.7.7"
    subprocess.run(["go", "install", module], check=True, env={**os.environ, "GOBIN": str(home)})
    # With shellcheck on the path it looks at the scripts of the steps, too.
    assert_silent("env", f"PATH={PROGRAMS}:{os.environ['PATH']}", home / "actionlint", "-no-color")


@pytest.mark.parametrize("file", files_like("*Dockerfile*"))
def test_hadolint_finds_nothing(file):
    assert_silent(PROGRAMS / "hadolint", file)


@pytest.mark.parametrize("file", files_like("*.sh", ".ci/*"))
def test_shellcheck_finds_nothing(file):
    assert_silent(PROGRAMS / "shellcheck", "--external-sources", file)


def test_knip_finds_no_export_that_nobody_uses():
    assert_silent("npx", "--yes", "knip@6.44.2", "--include", "exports,types,files,duplicates")


def test_twine_takes_the_wheel():
    assert_silent(PROGRAMS / "twine", "check", "--strict", wheel())


def test_the_wheel_says_where_its_pages_are():
    archive = zipfile.ZipFile(wheel())
    metadata = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
    urls = [line for line in archive.read(metadata).decode().splitlines() if line.startswith("Project-URL: ")]
    assert len(urls) == 5


def test_the_wheel_holds_a_bill_of_materials_that_cyclonedx_takes():
    archive = zipfile.ZipFile(wheel())
    [name] = [name for name in archive.namelist() if ".dist-info/sboms/" in name]
    text = archive.read(name).decode()
    assert JsonStrictValidator(SchemaVersion.V1_5).validate_str(text) is None
    assert {"undici", "ajv", "yargs"} <= {component["name"] for component in json.loads(text)["components"]}
