"""The query of docs/scale.md, word for word, on the folders of shards and of the run after them."""

import json
import os
import pathlib
import subprocess

import pytest
from sandbox_process import EXECUTABLE, Sandbox
from user_folder import blocks

duckdb = pytest.importorskip("duckdb")
QUERY = blocks("sql", "scale.md")[0]


def connector(folder, *words):
    ended = subprocess.run(["node", EXECUTABLE, *words], cwd=folder, check=True, stdout=subprocess.PIPE, text=True)
    return ended.stdout


def test_shards_become_one_parquet_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("CONTACT_INTELLIGENCE_")]:
        monkeypatch.delenv(name)
    with Sandbox(people=400, undated=4, requestsPerMinute=0) as sandbox:
        (tmp_path / "config.json").write_text(json.dumps({**sandbox.config, "requests_per_minute": 6000}))
        plan = connector(tmp_path, "plan", "--config", "config.json", "--shards", "2")
        (tmp_path / "plan.jsonl").write_text(plan)
        for shard in ("0", "open"):
            words = ["--plan", "plan.jsonl", "--shard", shard, "--output", "rows", "--compress", "gzip"]
            connector(tmp_path, "read", "--config", "config.json", *words)
            sandbox.call("recheck", 9)
        folders = sorted(str(folder) for folder in (tmp_path / "rows").glob("shard-*"))
        (tmp_path / "state.json").write_text(connector(tmp_path, "state", "merge", *folders))
        words = ["--stream", "people", "--state", "state.json", "--output", "rows/daily"]
        connector(tmp_path, "read", "--config", "config.json", *words)
        people = {person["id"]: person for person in sandbox.call("people")}
    # What a killed try leaves has a hidden name, and nothing may read it.
    left = pathlib.Path(folders[0]) / "people"
    (left / ".20260101T000000Z-000000001.jsonl").write_text('{"id": "left", "discoveredAt": null}\n')
    duckdb.sql(QUERY)
    as_text = "strftime(\"discoveredAt\"::TIMESTAMPTZ AT TIME ZONE 'UTC', '%Y-%m-%dT%H:%M:%S.%gZ')"
    rows = duckdb.sql(f"SELECT id, email, {as_text} FROM 'people.parquet'").fetchall()
    assert len(rows) == len(people)
    for key, email, discovered in rows:
        assert (email, discovered) == (people[key]["email"], people[key]["discoveredAt"])
