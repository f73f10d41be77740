"""The commands of docs/scale.md, word for word, and the tables of docs/recipes.md and docs/warehouses.md on the folders of shards."""

import json

from conftest import psql, query, serve, shell
from test_files import LOAD, NEWEST, PARQUET, VIEWS, newest
from user_folder import blocks

*_, COMMANDS = blocks("sh", "scale.md")


def test_shards_become_one_parquet_file(folder):
    *first_load, continues, daily = COMMANDS.splitlines()
    with serve(folder, 400) as sandbox:
        for command in first_load:
            assert shell(command)
            sandbox.call("recheck", 9)
        assert shell(VIEWS)
        assert shell(continues)
        sandbox.call("recheck", 9)
        assert shell(f"{daily} --compress gzip")
        people = newest(sandbox)
    # What a killed try leaves has a hidden name, and nothing may read it.
    left = next(folder.glob("contacts/shard-*/people")) / ".20260101T000000Z-000000001.jsonl"
    left.write_text(json.dumps({"id": "left", "discoveredAt": None}))
    query(PARQUET)
    assert query(f"{NEWEST} FROM 'people.parquet' ORDER BY id") == people, "also the rows of the runs after the view"
    assert shell(LOAD)
    assert sorted(psql("SELECT id, email, record ->> 'discoveredAt' FROM people")) == people
