"""The scripts of docs/erasure.md from the first load to the deletion, word for word."""

import json
import os
import subprocess

import pytest
from sandbox_process import EXECUTABLE, ROOT, Sandbox
from user_folder import blocks, path_with_program

duckdb = pytest.importorskip("duckdb")
READ, LOAD = blocks("sh")[:2]
QUERY, COMPARE, ERASE_FILES, ERASE_POSTGRES = blocks("sh", "erasure.md")
DELETE_DUCKDB, DELETE_POSTGRES, DELETE_OTHERS = blocks("sql", "erasure.md")
MOVES = ["recheck=5:path=/people/stream", "arrive=3:path=/people/stream"]


class Desk:
    """A user's folder beside a service that has 300 people, and later no longer has 20 of them."""

    def __init__(self, folder, postgres):
        self.folder = folder
        self.env = {**os.environ, **postgres, "PATH": path_with_program(folder)}
        for name in ("erase-files.sh", "erase-postgres.sh"):
            (folder / name).write_text((ROOT / "docs" / "sql" / name).read_text())
        (folder / "load.sh").write_text(LOAD)
        self.service = Sandbox(people=300, undated=4, requestsPerMinute=0)
        config = {**self.service.config, "requests_per_minute": 6000}
        (folder / "config.json").write_text(json.dumps(config))

    def run(self, script):
        """Whether a script succeeds."""
        words = ["bash", "-uo", "pipefail", "-c", script]
        return subprocess.run(words, cwd=self.folder, env=self.env, timeout=120).returncode == 0

    def lose(self):
        """Twenty people are erased, and others move and arrive while they are read."""
        port = self.service.port
        self.service.stop()
        self.service = Sandbox(people=280, undated=4, requestsPerMinute=0, port=port)
        self.service.call("fault", *MOVES)

    def living(self):
        return sorted(person["id"] for person in self.service.call("people"))

    def in_view(self):
        """Whom the view of docs/files.md shows."""
        view = blocks("sql")[0].replace("contacts/", f"{self.folder}/contacts/")
        with duckdb.connect() as database:
            database.execute(view)
            return sorted(key for (key,) in database.execute("SELECT id FROM people").fetchall())

    def in_postgres(self):
        words = ["psql", "-At", "-c", "SELECT record ->> 'id' FROM people ORDER BY 1"]
        return sorted(subprocess.run(words, env=self.env, check=True, capture_output=True, text=True).stdout.split())

    def in_files(self):
        files = [file for folder in ("contacts/people", "loaded") for file in (self.folder / folder).rglob("*.jsonl*")]
        return sorted({json.loads(line)["id"] for file in files for line in file.open()})


@pytest.fixture
def desk(tmp_path, request):
    postgres = request.getfixturevalue("postgres") if "postgres" in request.fixturenames else {}
    desk = Desk(tmp_path, postgres)
    yield desk
    desk.service.stop()


def test_files(desk):
    assert desk.run(READ)
    before = desk.in_view()
    with duckdb.connect(str(desk.folder / "own.duckdb")) as database:
        database.execute(f"CREATE TABLE my_people AS SELECT unnest({before}) AS id")
    desk.lose()
    assert desk.in_view() == before
    assert desk.run(ERASE_FILES)
    desk.service.call("arrive", 6)
    desk.service.call("recheck", 9)
    assert desk.run(READ)
    assert desk.in_view() == desk.living() == desk.in_files()
    with duckdb.connect(str(desk.folder / "own.duckdb")) as database:
        database.execute(blocks("sql")[0].replace("contacts/", f"{desk.folder}/contacts/"))
        database.execute(DELETE_OTHERS)
        left = [key for (key,) in database.execute("SELECT id FROM my_people ORDER BY id").fetchall()]
    assert left == sorted(set(before) & set(desk.living()))


def test_a_start_that_moves_removes_nobody(desk):
    assert desk.run(READ)
    before = desk.in_files()
    desk.env["CONTACT_INTELLIGENCE_START_DATE"] = "30d"
    assert not desk.run(ERASE_FILES)
    assert desk.in_files() == before


def test_postgresql(desk, postgres):
    assert desk.run(f"{READ}\nsh load.sh")
    before = desk.in_postgres()
    desk.lose()
    (desk.folder / "load.sh").write_text("exit 0")
    assert not desk.run(ERASE_POSTGRES), "what was read anew is not in the table"
    assert desk.in_postgres() == before
    (desk.folder / "load.sh").write_text(LOAD)
    assert desk.run(ERASE_POSTGRES)
    desk.service.call("arrive", 6)
    desk.service.call("recheck", 9)
    assert desk.run(f"{READ}\nsh load.sh")
    assert desk.in_postgres() == desk.living() == desk.in_files()


def forget(desk):
    """Twenty people are erased, and the user names two; returns a way to say later whom the table must still have."""
    before = desk.living()
    desk.lose()
    named = [desk.living()[7], next(key for key in before if key not in desk.living())]
    (desk.folder / "suppressed.txt").write_text("\n".join(named))
    config = {**json.loads((desk.folder / "config.json").read_text()), "suppress_file": "suppressed.txt"}
    (desk.folder / "config.json").write_text(json.dumps(config))
    return lambda: sorted(set(before) & set(desk.living()) - set(named))


def test_any_table_of_duckdb(desk):
    assert desk.run(READ)
    with duckdb.connect(str(desk.folder / "own.duckdb")) as database:
        database.execute(f"SET file_search_path = '{desk.folder}'")
        database.execute(f"CREATE TABLE people AS FROM read_json('{desk.folder}/contacts/people/*.jsonl')")
        left = forget(desk)
        assert desk.run(QUERY)
        database.execute((desk.folder / "keys.sql").read_text().replace("keys.csv", str(desk.folder / "keys.csv")))
        assert desk.run(COMPARE)
        database.execute(DELETE_DUCKDB)
        assert [key for (key,) in database.execute("SELECT id FROM people ORDER BY id").fetchall()] == left()


def test_any_table_of_postgresql(desk, postgres):
    assert desk.run(READ)
    rows = [json.loads(line) for file in (desk.folder / "contacts" / "people").iterdir() for line in file.open()]
    values = "\n".join(f"{row['id']}\t{row['discoveredAt'] or chr(92) + 'N'}" for row in rows)
    table = 'CREATE TABLE people (id text, "discoveredAt" timestamptz);\nCOPY people FROM stdin;'
    (desk.folder / "table.sql").write_text(f"{table}\n{values}\n\\.\n")
    left = forget(desk)
    (desk.folder / "delete.sql").write_text(DELETE_POSTGRES)
    assert desk.run(f"psql -q -f table.sql\n{QUERY.replace('duckdb', 'postgres')}\npsql -q -f keys.sql")
    assert desk.run(COMPARE)
    assert desk.run("psql -q -v ON_ERROR_STOP=1 -f delete.sql")
    words = ["psql", "-At", "-c", 'SELECT id FROM people ORDER BY id COLLATE "C"']
    found = subprocess.run(words, env=desk.env, check=True, capture_output=True, text=True).stdout.split()
    assert found == left()


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
    assert desk.run(READ)
    before = desk.in_view()
    desk.lose()
    program = desk.folder / "bin" / "source-contact-intelligence"
    program.unlink()
    program.write_text(f'#!/bin/bash\n{trouble}\nnode {EXECUTABLE} "$@"\n')
    program.chmod(0o755)
    assert not desk.run(ERASE_FILES)
    assert set(before) <= set(desk.in_view())
    program.unlink()
    program.symlink_to(EXECUTABLE)
    assert desk.run(ERASE_FILES), "later"
    assert desk.in_view() == desk.living()
