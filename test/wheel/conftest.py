"""Settings of PyAirbyte: they must be there before it is imported."""

import os

import pyairbyte_home  # noqa: F401

# Installs with pip, as it does where uv is not there.
os.environ["AIRBYTE_NO_UV"] = "1"
