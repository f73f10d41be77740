"""PyAirbyte without its own look-ups on the internet, with all its files in one temporary folder: set before it is imported."""

import atexit
import os
import pathlib
import shutil
import tempfile

HOME = pathlib.Path(tempfile.mkdtemp(prefix="pyairbyte-"))
atexit.register(shutil.rmtree, HOME, ignore_errors=True)
# A container's user reads the config files there too.
HOME.chmod(0o755)

os.environ |= {
    "AIRBYTE_OFFLINE_MODE": "1",
    "DO_NOT_TRACK": "1",
    "AIRBYTE_TEMP_DIR": str(HOME),
    "AIRBYTE_LOGGING_ROOT": str(HOME / "logs"),
    "AIRBYTE_PROJECT_DIR": str(HOME),
    "NO_COLOR": "1",
}
