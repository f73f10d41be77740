"""What is built once for all suites: TEST_WHEEL and TEST_IMAGE name them, or they are built here."""

import os
import subprocess
import sys

from sandbox_process import ROOT


def built(variable, script):
    """What a script of scripts/ prints: the path or name of what it has built."""
    if variable not in os.environ:
        words = ["node", ROOT / "scripts" / script]
        env = {**os.environ, "PYTHON": sys.executable}
        os.environ[variable] = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True, env=env).stdout.strip()
    return os.environ[variable]


def wheel():
    return built("TEST_WHEEL", "wheel.js")


def image():
    return built("TEST_IMAGE", "image.js")
