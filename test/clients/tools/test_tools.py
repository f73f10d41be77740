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


LINTERS = [
    [PROGRAMS / "zizmor", "--offline", "--persona", "regular", ".github"],
    ["npx", "--yes", "knip@6.44.2", "--include", "exports,types,files,duplicates"],
    *([PROGRAMS / "hadolint", file] for file in files_like("*Dockerfile*")),
    *([PROGRAMS / "shellcheck", "--external-sources", file] for file in files_like("*.sh", ".ci/*")),
]


@pytest.mark.parametrize("command", LINTERS, ids=lambda command: f"{Path(command[0]).name} {command[-1]}")
def test_finds_nothing(command):
    assert_silent(*command)


@pytest.mark.skipif("TEST_NIGHTLY" not in os.environ, reason="it is built by Go, at night")
def test_actionlint_finds_nothing_in_the_workflows():
    home = ROOT / ".cache" / "tools-go"
    module = "github.com/rhysd/actionlint/cmd/actionlint@v1.7.7"
    subprocess.run(["go", "install", module], check=True, env={**os.environ, "GOBIN": str(home)})
    # With shellcheck on the path it looks at the scripts of the steps, too.
    assert_silent("env", f"PATH={PROGRAMS}:{os.environ['PATH']}", home / "actionlint", "-no-color")


def test_twine_takes_the_wheel():
    assert_silent(PROGRAMS / "twine", "check", "--strict", wheel())


def test_the_wheel_says_where_its_pages_are_and_holds_a_bill_of_materials_that_cyclonedx_takes():
    archive = zipfile.ZipFile(wheel())

    def text(part):
        (name,) = [name for name in archive.namelist() if part in name]
        return archive.read(name).decode()

    assert text(".dist-info/METADATA").count("\nProject-URL: ") == 5
    bill = text(".dist-info/sboms/")
    assert JsonStrictValidator(SchemaVersion.V1_5).validate_str(bill) is None
    assert {"undici", "ajv", "yargs"} <= {component["name"] for component in json.loads(bill)["components"]}
