"""The scripts of docs/erasure.md from the first load to the deletion, word for word, on DuckDB and PostgreSQL."""

import datetime
import json
import pathlib
import shlex
import shutil
import sys

import duckdb
import pytest
from conftest import psql, query, serve, shell
from sandbox_process import EXECUTABLE, ROOT
from test_files import LOAD, READ, VIEWS
from user_folder import blocks

COMPARE, ERASE_FILES, ERASE_POSTGRES = blocks("sh", "erasure.md")
KEYS_DUCKDB, KEYS_POSTGRES = blocks("sql", "reconcile.md")[:2]
DELETE_DUCKDB, DELETE_POSTGRES, DELETE_OTHERS = blocks("sql", "erasure.md")
(DELETE_IN_DLT,) = blocks("python", "erasure.md")
DLT_TABLE = "CREATE SCHEMA contacts; ATTACH 'contacts.db' AS files; CREATE TABLE contacts.people AS SELECT id FROM files.people"


class Desk:
    """A user's folder beside a service that has 300 people, and later no longer has 20 of them."""

    def __init__(self, folder):
        self.folder = folder
        for name in ("erase-files.sh", "erase-postgres.sh"):
            (folder / name).write_text((ROOT / "docs" / "sql" / name).read_text())
        self.service = serve(folder, 300)

    def lose(self):
        """Twenty people are erased, and others move and arrive while they are read."""
        self.service.stop()
        self.service = serve(self.folder, 280, port=self.service.port)
        self.service.call("fault", "recheck=5:path=/people/stream", "arrive=3:path=/people/stream")

    def move(self):
        """Others arrive and move afterwards."""
        self.service.call("fault")
        self.service.call("arrive", 6)
        self.service.call("recheck", 9)

    def configure(self, **settings):
        config = self.folder / "config.json"
        config.write_text(json.dumps({**json.loads(config.read_text()), **settings}))

    def living(self):
        return sorted(person["id"] for person in self.service.call("people"))

    def in_files(self):
        files = (self.folder / "contacts" / "people").rglob("*.jsonl*")
        return sorted({json.loads(line)["id"] for file in files for line in file.open()})


@pytest.fixture
def desk(folder):
    desk = Desk(folder)
    yield desk
    desk.service.stop()


def ids(rows):
    return sorted(row[0] for row in rows)


def in_view():
    """Whom the view of docs/recipes.md shows."""
    if not pathlib.Path("contacts.db").exists():
        assert shell(VIEWS)
    return ids(query("SELECT id FROM people"))


def in_postgres():
    return ids(psql("SELECT id FROM people"))


@pytest.mark.parametrize(
    "load, erase, shown",
    [(READ, ERASE_FILES, in_view), (f"{READ}\n{LOAD}", ERASE_POSTGRES, in_postgres)],
    ids=["files", "postgresql"],
)
def test_files_and_what_is_loaded_from_them(desk, load, erase, shown):
    assert shell(load)
    before = shown()
    desk.lose()
    assert shown() == before
    assert shell(erase)
    desk.move()
    assert shell(load)
    assert shown() == desk.living() == desk.in_files()


def test_a_table_that_was_made_from_the_view(desk):
    assert shell(READ)
    before = in_view()
    query("CREATE OR REPLACE TABLE my_people AS SELECT id FROM people")
    with duckdb.connect("warehouse.duckdb") as warehouse:
        warehouse.execute(DLT_TABLE)
    desk.lose()
    assert shell(ERASE_FILES)
    query(DELETE_OTHERS)
    assert shell(f"{sys.executable} - <<'END'\n{DELETE_IN_DLT}\nEND")
    with duckdb.connect("warehouse.duckdb") as warehouse:
        in_dlt = ids(warehouse.execute("FROM contacts.people").fetchall())
    assert ids(query("FROM my_people")) == in_dlt == sorted(set(before) & set(desk.living()))


def test_nobody_is_erased_over_a_start_that_moves_or_while_the_table_lacks_what_was_read_anew(desk):
    assert shell(f"{READ}\n{LOAD}")
    before = in_postgres()
    desk.lose()
    fails = f"#!/bin/sh\n[ ! -e erasure.json ] || exit 1\nexec {shutil.which('psql')} \"$@\"\n"
    unloaded = f"echo {shlex.quote(fails)} > bin/psql; chmod +x bin/psql; trap 'rm bin/psql' EXIT"
    for trouble in ("export CONTACT_INTELLIGENCE_START_DATE=30d", unloaded):
        assert not shell(f"{trouble}\n{ERASE_POSTGRES}")
        assert in_postgres() == before
    assert shell(ERASE_POSTGRES), "later"
    desk.move()
    assert shell(f"{READ}\n{LOAD}")
    assert in_postgres() == desk.living()


@pytest.mark.parametrize("dialect", ["duckdb", "postgres"])
def test_any_table(desk, dialect):
    rows = {(row["id"], row["discoveredAt"]) for row in desk.service.call("people")}
    before = desk.living()
    desk.lose()
    named = [desk.living()[7], next(key for key in before if key not in desk.living())]
    (desk.folder / "suppressed.txt").write_text("\n".join(named))
    desk.configure(suppress_file="suppressed.txt")
    table = f'CREATE TABLE people (id varchar, "discoveredAt" timestamptz); INSERT INTO people VALUES {values(rows)};'
    if dialect == "duckdb":
        with duckdb.connect() as database:
            database.execute(f"{table}\n{KEYS_DUCKDB}")
            assert shell(COMPARE)
            left = database.execute(f"{DELETE_DUCKDB}FROM people").fetchall()
    else:
        psql(f"{table}\n{KEYS_POSTGRES}")
        assert shell(COMPARE)
        left = psql(f"{DELETE_POSTGRES}SELECT * FROM people;")
    assert ids(left) == sorted(set(before) & set(desk.living()) - set(named))


def values(rows):
    return ", ".join(f"({', '.join('NULL' if value is None else repr(str(value)) for value in row)})" for row in rows)


def left_after(script, columns, rows):
    """Whom a table of these rows has after a script of docs/sql, in both databases alike."""
    table = f"CREATE OR REPLACE TABLE people ({columns}); INSERT INTO people VALUES {values(rows)};"
    script = f"{table}\n{(ROOT / 'docs' / 'sql' / script).read_text()}\nSELECT DISTINCT id FROM people;"
    with duckdb.connect() as database:
        left = ids(database.execute(script).fetchall())
    assert left == ids(psql(script.replace("CREATE OR REPLACE", "DROP TABLE IF EXISTS people; CREATE")))
    return left


def messages_of(desk, program, catalog, state):
    (desk.folder / "catalog.json").write_text(json.dumps(catalog))
    (desk.folder / "saved.json").write_text(json.dumps(state))
    assert shell(f"{program} --config config.json --catalog catalog.json --state saved.json > messages.jsonl")
    return [json.loads(line) for line in (desk.folder / "messages.jsonl").open()]


def test_a_refresh_by_airbyte(desk):
    def read(mode, generation, state):
        stream = {"stream": {"name": "people"}, "sync_mode": mode, "generation_id": generation, "sync_id": generation}
        messages = messages_of(desk, "source-contact-intelligence read", {"streams": [stream]}, state)
        rows = [(one["record"]["data"]["id"], generation) for one in messages if one["type"] == "RECORD"]
        return rows, [one["state"] for one in messages if one["type"] == "STATE"]

    before, _ = read("full_refresh", 1, [])
    desk.lose()
    refreshed, state = read("full_refresh", 2, [])
    desk.move()
    later, _ = read("incremental", 2, state)
    rows = [*before, *refreshed, *later]
    assert set(ids(rows)) > set(desk.living())
    for kept in (rows, {row[0]: row for row in rows}.values()):
        columns = "id varchar, _airbyte_generation_id bigint"
        assert left_after("erased-airbyte.sql", columns, kept) == desk.living()


def test_a_full_table_in_meltano(desk):
    desk.configure(emit_activate_version_messages=True)
    tap = f"node {EXECUTABLE.with_name('tap-contact-intelligence.js')}"
    assert shell(f"{tap} --config config.json --discover > catalog.json")
    catalog = json.loads((desk.folder / "catalog.json").read_text())
    received = datetime.datetime(2026, 1, 1)

    def read(method, state):
        nonlocal received
        for stream in catalog["streams"]:
            (root,) = [entry["metadata"] for entry in stream["metadata"] if not entry["breadcrumb"]]
            root |= {"selected": stream["tap_stream_id"] == "people", "replication-method": method}
        messages = messages_of(desk, tap, catalog, state)
        rows = []
        for one in messages:
            if one["type"] == "RECORD":
                received += datetime.timedelta(milliseconds=1)
                rows.append((one["record"]["id"], received, one.get("version")))
        return rows, messages[-1]["value"]

    columns = "id varchar, _sdc_received_at timestamp, _sdc_table_version bigint"
    before, _ = read("INCREMENTAL", {})
    assert left_after("erased-meltano.sql", columns, before) == desk.living(), "without a full table"
    desk.lose()
    desk.configure(emit_activate_version_messages=True)
    refreshed, state = read("FULL_TABLE", {})
    desk.move()
    later, _ = read("INCREMENTAL", state)
    rows = {row[0]: row for row in [*before, *refreshed, *later]}.values()
    assert set(ids(rows)) > set(desk.living())
    assert left_after("erased-meltano.sql", columns, rows) == desk.living()


@pytest.mark.parametrize(
    "trouble",
    [
        'case "$*" in *--full-refresh*) export CONTACT_INTELLIGENCE_API_KEY=svc_00000000_00000000000000000000000000000000 ;; esac',
        "[ ! -e contacts/people/full-* ] || exit 1",
        """trap 'sed -i "s/recheck.: .*/recheck\\": [[]],/" erasure.json' EXIT""",
    ],
    ids=["the refresh fails", "the run after it fails", "days to check again"],
)
def test_nobody_is_erased_unless_everyone_was_read(desk, trouble):
    assert shell(READ)
    before = in_view()
    desk.lose()
    program = desk.folder / "bin" / "source-contact-intelligence"
    program.unlink()
    program.write_text(f'#!/bin/bash\n{trouble}\nnode {EXECUTABLE} "$@"\n')
    program.chmod(0o755)
    assert not shell(ERASE_FILES)
    assert set(before) <= set(in_view())
    program.unlink()
    program.symlink_to(EXECUTABLE)
    assert shell(ERASE_FILES), "later"
    assert in_view() == desk.living()
