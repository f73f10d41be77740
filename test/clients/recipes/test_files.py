"""The recipes of docs/files.md, word for word."""

import datetime
import json
import os
import subprocess
import sys

import pytest
from conftest import shell
from user_folder import blocks

duckdb = pytest.importorskip("duckdb")
polars = pytest.importorskip("polars")


def expect_newest(rows, people):
    """Each person once, with what the service says last."""
    assert len(rows) == len(people)
    for row in rows:
        person = people[row["id"]]
        assert person["discoveredAt"] == row["discoveredAt"]
        assert person["email"] == row["email"]


def test_duckdb_and_parquet(contacts, monkeypatch):
    folder, people = contacts
    monkeypatch.chdir(folder)
    view, copy, *_ = blocks("sql")
    with duckdb.connect() as database:
        database.execute(view)
        database.execute(copy)
        as_text = "strftime(discoveredAt::TIMESTAMPTZ AT TIME ZONE 'UTC', '%Y-%m-%dT%H:%M:%S.%gZ')"
        for source in ("people", "'people.parquet'"):
            rows = database.execute(f"SELECT id, email, {as_text} FROM {source}").fetchall()
            expect_newest([dict(zip(("id", "email", "discoveredAt"), row)) for row in rows], people)


def test_polars(contacts, monkeypatch):
    folder, people = contacts
    monkeypatch.chdir(folder)
    names = {}
    exec(blocks("python")[0], names)
    expect_newest(names["people"].to_dicts(), people)


def test_pandas(contacts, monkeypatch):
    folder, people = contacts
    monkeypatch.chdir(folder)
    names = {}
    exec(blocks("python")[1], names)
    rows = names["people"][["id", "email", "discoveredAt"]].astype(object)
    expect_newest(rows.where(rows.notna(), None).to_dict("records"), people)


def test_companies_and_sources(contacts, monkeypatch):
    folder, _ = contacts
    monkeypatch.chdir(folder)
    with duckdb.connect() as database:
        for view in blocks("sql")[2:4]:
            database.execute(view)
        for stream, key in (("sources", "slug"), ("companies", "domain")):
            files = [json.loads(line) for file in (folder / "contacts" / stream).rglob("*.jsonl") for line in file.open()]
            keys = [key for (key,) in database.execute(f"SELECT {key} FROM {stream}").fetchall()]
            assert len(files) > len(keys), "two runs, each with all of them"
            assert sorted(keys) == sorted({row[key] for row in files})


def test_since_when_every_day_is_proven(contacts, monkeypatch):
    folder, _ = contacts
    monkeypatch.chdir(folder)
    with duckdb.connect() as database:
        database.execute(blocks("sql")[4])
        query = "SELECT stream, proven_from::VARCHAR, proven_to::VARCHAR, current_date - 2 FROM proven ORDER BY stream"
        for (stream, first, last, closed), expected in zip(database.execute(query).fetchall(), ("companies", "people"), strict=True):
            assert (stream, first) == (expected, "1970-01-02")
            assert abs((datetime.date.fromisoformat(last) - closed).days) <= 1, "UTC and local days"


def test_dlt(contacts, monkeypatch):
    """Loads what two runs left, then finds nothing new; a process of its own, because dlt keeps much of it."""
    folder, people = contacts
    script = f"import os; os.chdir({str(folder)!r})\n{blocks('python')[2]}"
    for _ in ("the files", "nothing new"):
        subprocess.run([sys.executable, "-c", script], check=True, env={**os.environ, "DLT_DATA_DIR": str(folder)})
    with duckdb.connect(str(folder / "warehouse.duckdb")) as database:
        as_text = "strftime(discovered_at AT TIME ZONE 'UTC', '%Y-%m-%dT%H:%M:%S.%gZ')"
        rows = database.execute(f"SELECT id, email, {as_text} FROM contacts.people").fetchall()
    expect_newest([dict(zip(("id", "email", "discoveredAt"), row)) for row in rows], people)


def test_postgresql(contacts, postgres):
    folder, people = contacts
    for _ in ("the files", "nothing new"):
        shell(blocks("sh")[1], folder, **postgres)
    query = "SELECT record ->> 'id', record ->> 'email', record ->> 'discoveredAt' FROM people"
    words = ["psql", "-At", "-F", "\t", "--pset=null=NULL", "-c", query]
    text = subprocess.run(words, env={**os.environ, **postgres}, check=True, capture_output=True, text=True).stdout
    rows = [[None if value == "NULL" else value for value in line.split("\t")] for line in text.splitlines()]
    expect_newest([dict(zip(("id", "email", "discoveredAt"), row)) for row in rows], people)
    assert list((folder / "contacts" / "people").iterdir()) == []
