"""Loads people with dlt's rest_api into JSON lines below delivered/."""

import json
import os
from pathlib import Path

os.environ.update(
    RUNTIME__LOG_LEVEL="WARNING",
    RUNTIME__DLTHUB_TELEMETRY="false",
    NORMALIZE__DATA_WRITER__DISABLE_COMPRESSION="true",
)

import dlt
from dlt.destinations import filesystem
from dlt.sources.helpers.requests.retry import DEFAULT_RETRY_STATUS, Client
from dlt.sources.rest_api import rest_api_source

config = json.loads(Path("config.json").read_text())
source = rest_api_source(
    {
        "client": {
            "base_url": config["base_url"],
            "auth": {"type": "api_key", "name": "X-API-Key", "api_key": config["api_key"], "location": "header"},
            "session": Client(raise_for_status=False, status_codes=(*DEFAULT_RETRY_STATUS, 423)).session,
        },
        "resources": [
            {
                "name": "people",
                "primary_key": "id",
                "write_disposition": "merge",
                "endpoint": {
                    "path": "/api/v1/public/people",
                    "data_selector": "data",
                    "paginator": {
                        "type": "page_number",
                        "base_page": 1,
                        "total_path": "pagination.totalPages",
                    },
                    "params": {"limit": 1000},
                    "incremental": {
                        "cursor_path": "discoveredAt",
                        "start_param": "discovered_from",
                        "initial_value": f"{config['start_date']}T00:00:00.000Z",
                        "convert": lambda moment: moment[:10],
                        "lag": 86400,
                        "on_cursor_value_missing": "include",
                    },
                },
            }
        ],
    }
)
pipeline = dlt.pipeline(
    pipeline_name="contacts",
    destination=filesystem(bucket_url=Path("delivered").absolute().as_uri()),
    dataset_name="contacts",
    pipelines_dir=str(Path("pipelines").absolute()),
)
pipeline.run(source, loader_file_format="jsonl").raise_on_failed_jobs()
