"""Airbyte's Python CDK on the same endpoint: a low-code manifest, JSON lines, one stream, full refresh."""

import json
import sys
import tempfile
from pathlib import Path

from airbyte_cdk.entrypoint import launch
from airbyte_cdk.sources.declarative.concurrent_declarative_source import (
    ConcurrentDeclarativeSource,
)

schema = json.loads((Path(__file__).parents[2] / "schemas" / "people.json").read_text())
manifest = {
    "version": "6.0.0",
    "type": "DeclarativeSource",
    "check": {"type": "CheckStream", "stream_names": ["people"]},
    "streams": [
        {
            "type": "DeclarativeStream",
            "name": "people",
            "primary_key": "id",
            "schema_loader": {"type": "InlineSchemaLoader", "schema": schema},
            "retriever": {
                "type": "SimpleRetriever",
                "requester": {
                    "type": "HttpRequester",
                    "url_base": sys.argv[1],
                    "path": "/api/v1/public/people/stream",
                    "http_method": "GET",
                },
                "decoder": {"type": "JsonlDecoder"},
                "record_selector": {
                    "type": "RecordSelector",
                    "extractor": {"type": "DpathExtractor", "field_path": []},
                },
            },
        }
    ],
    "spec": {"type": "Spec", "connection_specification": {"type": "object", "properties": {}}},
}
catalog = {
    "streams": [
        {
            "stream": {"name": "people", "json_schema": schema, "supported_sync_modes": ["full_refresh"]},
            "sync_mode": "full_refresh",
            "destination_sync_mode": "append",
        }
    ]
}

with tempfile.TemporaryDirectory() as folder:
    config_path, catalog_path = Path(folder, "config.json"), Path(folder, "catalog.json")
    config_path.write_text("{}")
    catalog_path.write_text(json.dumps(catalog))
    from airbyte_cdk.models import ConfiguredAirbyteCatalogSerializer

    source = ConcurrentDeclarativeSource(
        catalog=ConfiguredAirbyteCatalogSerializer.load(catalog),
        config={},
        state=[],
        source_config=manifest,
    )
    launch(source, ["read", "--config", str(config_path), "--catalog", str(catalog_path)])
