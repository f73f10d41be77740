"""The recipes of docs/files.md, word for word."""

import json
import subprocess
import sys

import duckdb
import pytest
from conftest import psql, serve, shell
from user_folder import blocks

SQL, SHELL, PYTHON = blocks("sql"), blocks("sh"), blocks("python")
NEWEST = """SELECT id, email, strftime("discoveredAt"::TIMESTAMPTZ AT TIME ZONE 'UTC', '%Y-%m-%dT%H:%M:%S.%gZ')"""


def newest(sandbox):
    """Each person once, with what the service says last."""
    return sorted((row["id"], row["email"], row["discoveredAt"]) for row in sandbox.call("people"))


@pytest.fixture
def people(folder):
    """The people of the service. The folder has files of two runs: who was checked again stands in both."""
    with serve(folder, 300) as sandbox:
        assert shell(SHELL[0])
        sandbox.call("arrive", 5)
        sandbox.call("recheck", 7)
        assert shell(SHELL[0])
        assert shell(SHELL[0].strip() + " --full-refresh --stream companies --stream sources")
        people = newest(sandbox)
    files = [file.read_text().splitlines() for file in (folder / "contacts" / "people").iterdir()]
    assert len(files) == 2 and sum(map(len, files)) > len(people)
    return people


def test_duckdb_and_parquet(people):
    for query in SQL[:2]:
        duckdb.sql(query)
    for source in ("people", "'people.parquet'"):
        assert duckdb.sql(f"{NEWEST} FROM {source} ORDER BY id").fetchall() == people


@pytest.mark.parametrize("code", PYTHON[:2], ids=["polars", "pandas"])
def test_a_notebook(people, code):
    names = {}
    exec(code, names)
    rows = names["people"]
    rows = rows.to_dicts() if "polars" in code else rows.astype(object).where(rows.notna(), None).to_dict("records")
    assert sorted((row["id"], row["email"], row["discoveredAt"]) for row in rows) == people


def test_one_file(people, folder):
    """Each line is one that the service sent, and the newest of its person."""
    duckdb.sql(SQL[-1])
    lines = (folder / "people.jsonl").read_bytes().splitlines()
    rows = [json.loads(line) for line in lines]
    assert sorted((row["id"], row["email"], row["discoveredAt"]) for row in rows) == people
    sent = [file.read_bytes().splitlines() for file in (folder / "contacts" / "people").iterdir()]
    assert set(lines) <= {line for file in sent for line in file}


def test_companies_and_sources(people, folder):
    for view in SQL[2:4]:
        duckdb.sql(view)
    for stream, key in (("sources", "slug"), ("companies", "domain")):
        files = [json.loads(line) for file in (folder / "contacts" / stream).rglob("*.jsonl") for line in file.open()]
        keys = [key for (key,) in duckdb.sql(f"SELECT {key} FROM {stream}").fetchall()]
        assert len(files) > len(keys), "two runs, each with all of them"
        assert sorted(keys) == sorted({row[key] for row in files})


def test_dlt(people, folder, monkeypatch):
    """Loads what two runs left, then finds nothing new; a process of its own, because dlt keeps much of it."""
    monkeypatch.setenv("DLT_DATA_DIR", str(folder))
    for _ in ("the files", "nothing new"):
        subprocess.run([sys.executable, "-c", PYTHON[2]], check=True)
    with duckdb.connect("warehouse.duckdb") as database:
        query = f"{NEWEST.replace('discoveredAt', 'discovered_at')} FROM contacts.people ORDER BY id"
        assert database.sql(query).fetchall() == people


def test_postgresql(people):
    for _ in ("the files", "nothing new"):
        assert shell(SHELL[1])
    assert sorted(psql("SELECT record ->> 'id', record ->> 'email', record ->> 'discoveredAt' FROM people")) == people
