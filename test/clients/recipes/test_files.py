"""The recipes of docs/files.md, docs/recipes.md and docs/warehouses.md, word for word."""

import json
import re
import subprocess
import sys

import duckdb
import pytest
from conftest import Rows, psql, query, serve, shell
from user_folder import blocks

(READ,), (VIEWS,), LOAD = blocks("sh", "files.md"), blocks("sh", "recipes.md"), blocks("sh", "warehouses.md")[0]
(PARQUET, ONE_FILE), (POLARS, PANDAS) = blocks("sql", "recipes.md"), blocks("python", "recipes.md")
(DLT,), HIDE_EMAILS = blocks("python", "warehouses.md"), blocks("sql", "warehouses.md")[-1]
(FORGET_LOADS,) = blocks("sh", "privacy.md")
NEWEST = """SELECT id, email, strftime("discoveredAt"::TIMESTAMPTZ AT TIME ZONE 'UTC', '%Y-%m-%dT%H:%M:%S.%gZ')"""


def newest(sandbox):
    """Each person once, with what the service says last."""
    return sorted((row["id"], row["email"], row["discoveredAt"]) for row in sandbox.call("people"))


@pytest.fixture
def people(folder):
    """The people of the service. The folder has files of two runs: who was checked again is in both."""
    with serve(folder, 300) as sandbox:
        assert shell(READ)
        sandbox.call("arrive", 5)
        sandbox.call("recheck", 7)
        assert shell(READ.strip() + " --compress gzip")
        assert shell(READ.strip() + " --full-refresh --stream companies --stream sources")
        people = newest(sandbox)
    files = (folder / "contacts" / "people").iterdir()
    assert sorted(file.suffix for file in files) == [".gz", ".jsonl"]
    return people


def notebook(code):
    """The people of a notebook, each as a dictionary."""
    names = {}
    exec(code, names)
    rows = names["people"]
    return rows.to_dicts() if code == POLARS else rows.where(rows.notna(), None).to_dict("records")


def load_with_dlt(folder, monkeypatch):
    """In a process of its own, because dlt keeps much of it. All folders are of one user, whose home dlt shares."""
    monkeypatch.setenv("DLT_DATA_DIR", str(folder.parent))
    return subprocess.run([sys.executable, "-c", DLT], check=True, stdout=subprocess.PIPE, text=True).stdout


def test_duckdb_and_parquet(people, folder):
    assert shell(VIEWS)
    query(PARQUET)
    for source in ("people", "'people.parquet'"):
        assert query(f"{NEWEST} FROM {source} ORDER BY id") == people


@pytest.mark.parametrize("code", [POLARS, PANDAS], ids=["polars", "pandas"])
def test_a_notebook(people, code):
    assert sorted((row["id"], row["email"], row["discoveredAt"]) for row in notebook(code)) == people


def test_one_file(people, folder):
    """Each line is one that the service sent, and the newest of its person."""
    duckdb.sql(ONE_FILE)
    lines = (folder / "people.jsonl").read_bytes().splitlines()
    rows = [json.loads(line) for line in lines]
    assert sorted((row["id"], row["email"], row["discoveredAt"]) for row in rows) == people
    assert shell("cat contacts/people/*.jsonl > sent; gzip -dc contacts/people/*.gz >> sent")
    assert set(lines) <= set((folder / "sent").read_bytes().splitlines())


def test_companies_and_sources(people, folder):
    assert shell(f"{VIEWS}\n{LOAD}")
    for stream, key in (("sources", "slug"), ("companies", "domain")):
        files = [json.loads(line) for file in (folder / "contacts" / stream).rglob("*.jsonl") for line in file.open()]
        keys = sorted({row[key] for row in files})
        assert len(files) > len(keys), "two runs, each with all of them"
        assert sorted(query(f"SELECT {key} FROM {stream}")) == sorted(psql(f"SELECT {key} FROM {stream}")) == [(one,) for one in keys]
    dated = """SELECT count(*) FROM companies WHERE "discoveredAt" <= now()"""
    before = query(dated)
    assert shell(f"rm contacts/companies/*.jsonl*\n{FORGET_LOADS}\n{VIEWS}\n{LOAD}")
    after = query(dated)
    assert before == after == [(50,)] and psql(dated) == psql("SELECT count(*) FROM companies_loads") == [("50",)]


def test_dlt(people, folder, monkeypatch):
    """Loads what two runs left, then finds nothing new."""
    for _ in ("the files", "nothing new"):
        load_with_dlt(folder, monkeypatch)
    with duckdb.connect("warehouse.duckdb") as database:
        selected = f"{NEWEST.replace('discoveredAt', 'discovered_at')} FROM contacts.people ORDER BY id"
        assert database.sql(selected).fetchall() == people


def test_postgresql(people):
    for _ in ("the files", "nothing new"):
        assert shell(LOAD)
    assert sorted(psql("SELECT id, email, record ->> 'discoveredAt' FROM people")) == people
    moments = psql("""SELECT count(*) FROM people WHERE "discoveredAt" = (record ->> 'discoveredAt')::timestamptz""")
    assert moments == [(str(sum(moment is not None for _, _, moment in people)),)]


def test_a_view_hides_the_emails_of_other_countries_and_of_people_without_a_country(people):
    assert shell(f"{VIEWS}\n{LOAD}")
    query(HIDE_EMAILS)
    psql(HIDE_EMAILS)
    shown = "SELECT DISTINCT country FROM people_for_sales WHERE email IS NOT NULL"
    assert query(shown) == psql(shown) == [("United States",)]
    assert query("SELECT count(*) FROM people_for_sales") == [(len(people),)]


# What is lost by a program that takes fields and types from the first rows, or texts for dates.
LATE = 25_000
ROWS = [
    {
        "id": f"{nth:05}",
        "lastName": ["a\0b", "\\u0000", "\\\0\0"][nth % 3],
        "email": "2026-01-05",
        "location": "01-02-26",
        "companySize": 5 if nth < LATE else 5.5,
        "seniority": None if nth < LATE else "vp",
        "number": 2**53 + 1,
        "discoveredAt": "2026-03-20T10:00:00Z" if nth % 2 else "2026-03-20T10:00:00.123Z",
        **({} if nth < LATE else {"phone": "007"}),
    }
    for nth in range(30_000)
]
MORE = [{"id": f"more{nth:02}", "companySize": 7, "nick": "n", "discoveredAt": "2026-03-21T10:00:00Z"} for nth in range(20)]
FIELDS = ["id", "lastName", "email", "location", "companySize", "seniority", "number", "phone", "nick"]
SELECTED = f"SELECT {', '.join(FIELDS)} FROM people ORDER BY id"


@pytest.fixture
def late(folder):
    """The rows of a folder that has files of two runs."""
    with Rows(folder, ROWS) as service:
        assert shell(f"{READ.strip()} --stream people")
        service.rows = [*ROWS, *MORE]
        assert shell(f"{READ.strip()} --stream people")
    return [tuple(row.get(field) for field in FIELDS) for row in service.rows]


def test_late_rows_in_duckdb(late, folder):
    assert shell(VIEWS)
    assert query(SELECTED) == late
    assert query("SELECT count(seniority), count(phone), sum(companySize) FROM people WHERE nick IS NULL") == [(5000, 5000, 152_500)]
    query(PARQUET)
    assert query(SELECTED.replace("people", "'people.parquet'")) == late


@pytest.mark.parametrize("code", [POLARS, PANDAS], ids=["polars", "pandas"])
def test_late_rows_in_a_notebook(late, code):
    rows = sorted(notebook(code), key=lambda row: row["id"])
    assert [tuple(row[field] for field in FIELDS) for row in rows] == late


def test_late_rows_in_one_file(late, folder):
    duckdb.sql(ONE_FILE)
    rows = sorted(map(json.loads, (folder / "people.jsonl").open()), key=lambda row: row["id"])
    assert rows == [*ROWS, *MORE]


def test_late_rows_in_dlt(late, folder, monkeypatch):
    """dlt takes NUL out of texts."""
    assert "warehouse.duckdb" in load_with_dlt(folder, monkeypatch)
    with duckdb.connect("warehouse.duckdb") as database:
        snake = re.sub(r"([a-z])([A-Z])", r"\1_\2", SELECTED.replace("people", "contacts.people")).replace("ORDER_BY", "ORDER BY")
        assert database.sql(snake).fetchall() == [(key, name and name.replace("\0", ""), *rest) for key, name, *rest in late]


def test_late_rows_in_postgresql(late):
    """NUL becomes U+FFFD, and the next load finds nothing to do."""
    for _ in range(2):
        assert shell(LOAD)
    selected = """SELECT id, "lastName", email, location, "companySize", seniority, record ->> 'number', record ->> 'phone',
        record ->> 'nick' FROM people ORDER BY id COLLATE "C";"""
    rows = [tuple(None if value is None else str(value).replace("\0", "\ufffd") for value in row) for row in late]
    assert psql(selected) == rows
    assert psql("SELECT count(*) FROM people_loads") == [(str(len(late)),)]
