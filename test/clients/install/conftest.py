"""Settings of PyAirbyte: they must be there before it is imported."""

import pyairbyte_home  # noqa: F401
