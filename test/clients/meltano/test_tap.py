import json
import os

from shim import ExecutableTap
from singer_sdk.testing import SuiteConfig, get_tap_test_class

TestTap = get_tap_test_class(
    ExecutableTap,
    config=json.loads(os.environ["TAP_CONFIG"]),
    suite_config=SuiteConfig(max_records_limit=500),
)
