"""The tables of docs/recipes.md and docs/warehouses.md, on the folders of shards and of the run after them."""

import json

from conftest import psql, query, serve, shell
from test_files import LOAD, NEWEST, PARQUET, VIEWS, newest

PROGRAM = "source-contact-intelligence"
READ = f"{PROGRAM} read --config config.json"


def test_shards_become_one_parquet_file(folder):
    with serve(folder, 400) as sandbox:
        assert shell(f"{PROGRAM} plan --config config.json --shards 2 > plan.jsonl")
        for shard in ("0", "open"):
            assert shell(f"{READ} --plan plan.jsonl --shard {shard} --output contacts --compress gzip")
            sandbox.call("recheck", 9)
        assert shell(f"{PROGRAM} state merge contacts/shard-* > state.json")
        assert shell(VIEWS)
        assert shell(f"{READ} --stream people --state state.json --output contacts")
        people = newest(sandbox)
    # What a killed try leaves has a hidden name, and nothing may read it.
    left = next(folder.glob("contacts/shard-*/people")) / ".20260101T000000Z-000000001.jsonl"
    left.write_text(json.dumps({"id": "left", "discoveredAt": None}))
    query(PARQUET)
    assert query(f"{NEWEST} FROM 'people.parquet' ORDER BY id") == people, "also the rows of the run after the view"
    assert shell(LOAD)
    assert sorted(psql("SELECT id, email, record ->> 'discoveredAt' FROM people")) == people
