"""A real destination: PyAirbyte reads the sandbox into DuckDB, several times over."""

import datetime
import decimal
import importlib.metadata
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import airbyte as ab
import pytest
from airbyte.caches import DuckDBCache
from airbyte.exceptions import AirbyteConnectorCheckFailedError, AirbyteConnectorFailedError
from products import image
from sandbox_process import EXECUTABLE, ROOT, Sandbox

KEYS = {"people": "id", "companies": "domain", "sources": "slug"}
PEOPLE = 2000
UNLIMITED = {"requestsPerMinute": 0}


@pytest.fixture
def sandbox():
    with Sandbox(people=PEOPLE, **UNLIMITED) as running:
        yield running


@pytest.fixture
def cache(tmp_path):
    return DuckDBCache(db_path=tmp_path / "warehouse.duckdb", cache_dir=tmp_path / "files", schema_name="contacts")


def open_source(config, **how):
    how = how or {"local_executable": str(EXECUTABLE)}
    return ab.get_source("source-contact-intelligence", config=config, **how)


def source_of(config, **how):
    source = open_source(config, **how)
    source.select_all_streams()
    return source


def rows_of(cache, table):
    cursor = cache.get_sql_engine().raw_connection().cursor()
    cursor.execute(f"select * from contacts.{table}")
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row)) for row in cursor.fetchall()]


def tables_of(cache):
    cursor = cache.get_sql_engine().raw_connection().cursor()
    cursor.execute("select table_name from information_schema.tables where table_schema = 'contacts'")
    return {name for (name,) in cursor.fetchall() if not name.startswith("_")}


def plain(value):
    """A value of DuckDB as JSON would say it."""
    if isinstance(value, datetime.datetime):
        return value.timestamp() if value.tzinfo else value.replace(tzinfo=datetime.timezone.utc).timestamp()
    if isinstance(value, decimal.Decimal):
        return float(value)
    if isinstance(value, str) and value[:1] in ("[", "{"):
        return json.loads(value)
    return value


def expected(value, found):
    """A value of the service as its column says it."""
    if value is not None and isinstance(found, datetime.datetime):
        return datetime.datetime.fromisoformat(value.replace("Z", "+00:00")).timestamp()
    return value


def assert_equal_to_service(cache, sandbox):
    for table, key in KEYS.items():
        served = {row[key]: row for row in sandbox.call(table)}
        stored = {row[key]: row for row in rows_of(cache, table)}
        assert stored.keys() == served.keys(), table
        assert len(rows_of(cache, table)) == len(served), f"{table}: a key twice"
        for id_, row in served.items():
            for field, value in row.items():
                found = stored[id_][field.lower()]
                assert plain(found) == expected(value, found), f"{table}.{field}"


def test_the_first_read_takes_all_and_later_ones_what_is_new(sandbox, cache):
    source = source_of(sandbox.config)
    source.check()
    assert source.get_available_streams() == list(KEYS)
    first = source.read(cache=cache).processed_records
    assert first == sum(len(sandbox.call(table)) for table in KEYS)
    assert_equal_to_service(cache, sandbox)
    for _ in range(3):
        sandbox.call("recheck", 30, {"isUser": True})
        sandbox.call("arrive", 20)
        sandbox.call("advance", 86_400_000)
        again = source_of(sandbox.config).read(cache=cache).processed_records
        assert 0 < again < first / 10
        assert_equal_to_service(cache, sandbox)
    quiet = source_of(sandbox.config).read(cache=cache).processed_records
    assert quiet < again + 1, "nothing happened"


def test_a_field_that_appears_later_becomes_a_column(cache):
    same = {"people": 50, "now": "2026-11-21T10:00:00Z", **UNLIMITED}
    with Sandbox(companiesDated=False, **same) as before:
        port = before.port
        source_of(before.config).read(cache=cache)
        assert "discoveredat" not in rows_of(cache, "companies")[0]
    with Sandbox(companiesDated=True, port=port, **same) as after:
        source_of(after.config).read(cache=cache)
        assert_equal_to_service(cache, after)


def test_a_read_that_fails_stores_nothing_and_the_next_one_reads_all(sandbox, cache):
    source = source_of(sandbox.config)
    sandbox.call("fault", "status=403:path=/api/v1/public/companies:times=always")
    with pytest.raises(AirbyteConnectorFailedError, match="Exit Code: 1"):
        source.read(cache=cache)
    assert tables_of(cache) == set()
    sandbox.call("fault")
    source.read(cache=cache)
    assert_equal_to_service(cache, sandbox)


def test_look_ups_are_bought_once_though_another_stream_fails_and_state_is_thrown_away(sandbox, cache, tmp_path):
    domains = ["1.example", "2.example", "3.example"]
    jobs = {
        "receipts_file": str(tmp_path / "receipts.jsonl"),
        "external_api": {"api_url": sandbox.url, "api_key": sandbox.key},
        "company_lookup": {"domains": domains},
    }
    source = open_source({**sandbox.config, **jobs})
    source.select_streams(["companies", "company_lookups", "company_lookup_contacts"])
    sandbox.call("fault", "status=403:path=/api/v1/public/companies:times=always")
    for _ in range(3):
        with pytest.raises(AirbyteConnectorFailedError, match="Exit Code: 1"):
            source.read(cache=cache)
        assert tables_of(cache) == set()
    sandbox.call("fault")
    for how in ({}, {}, {"force_full_refresh": True}):
        source.read(cache=cache, **how)
        assert sorted(row["domain"] for row in rows_of(cache, "company_lookups")) == domains
        assert len(rows_of(cache, "company_lookup_contacts")) == 1 + 2 + 3
    assert sorted(one["item"] for one in sandbox.call("submissions")) == domains


def test_a_failed_check_says_why(sandbox):
    with pytest.raises(AirbyteConnectorCheckFailedError, match="Cannot .*API key"):
        open_source({**sandbox.config, "api_key": "svc_00000000_" + "0" * 32}).check()


def test_people_who_are_gone_stay_until_the_table_is_replaced(cache):
    with Sandbox(people=40, undated=0, **UNLIMITED) as before:
        config, port = before.config, before.port
        source_of(config).read(cache=cache)
    with Sandbox(people=30, undated=0, port=port, **UNLIMITED) as after:
        left = {row["id"] for row in after.call("people")}
        source_of(config).read(cache=cache)
        assert {row["id"] for row in rows_of(cache, "people")} > left
        source_of(config).read(cache=cache, force_full_refresh=True)
        assert {row["id"] for row in rows_of(cache, "people")} > left
        source_of(config).read(cache=cache, force_full_refresh=True, write_strategy="replace")
        assert {row["id"] for row in rows_of(cache, "people")} == left


def reconcile(cache, folder, config, table, *more):
    """Runs the query that the command prints, and compares its answer. Returns the exit code, and the ids of lost and of gone rows."""
    words = ["node", str(EXECUTABLE), "reconcile"]
    query = subprocess.run([*words, "--sql", "duckdb", "--table", table], check=True, capture_output=True, text=True).stdout
    cursor = cache.get_sql_engine().raw_connection().cursor()
    cursor.execute(query.replace("keys.csv", str(folder / "keys.csv")))
    (folder / "config.json").write_text(json.dumps(config))
    where = ["--config", folder / "config.json", "--table", folder / "keys.csv", "--output", folder / "found"]
    code = subprocess.run([*words, *map(str, where), *more], timeout=120).returncode
    lost = [json.loads(line)["id"] for line in (folder / "found" / "lost.jsonl").open()]
    gone = folder / "found" / "gone.csv"
    return code, sorted(lost), gone.read_text().splitlines()[1:] if gone.exists() else None


def test_reconcile_names_what_the_table_lost_and_who_is_gone(sandbox, cache, tmp_path):
    config = {**sandbox.config, "requests_per_minute": 6000}
    source_of(config).read(cache=cache)
    table = "contacts.people"
    assert reconcile(cache, tmp_path, config, table, "--full") == (0, [], [])
    dated = sorted(row["id"] for row in sandbox.call("people") if row["discoveredAt"] is not None)
    lost, old = dated[3:700:100], dated[4:500:100]
    cursor = cache.get_sql_engine().raw_connection().cursor()
    cursor.execute(f"delete from {table} where id in {tuple(lost)}")
    cursor.execute(f"update {table} set discoveredat = '2020-01-01' where id in {tuple(old)}")
    cursor.execute(f"insert into {table} by name select * replace ('erased' as id) from {table} limit 1")
    assert reconcile(cache, tmp_path, config, table, "--full") == (1, sorted(lost + old), ["erased"])
    # One who is gone makes up for one who is lost.
    cursor.execute(f"delete from {table} where id = 'erased'")
    assert reconcile(cache, tmp_path, config, table) == (1, sorted(lost + old), None)
    cursor.execute(f"delete from {table} where id in {tuple(old)}")
    cursor.execute(f"insert into {table} by name select * from read_json('{tmp_path}/found/lost.jsonl')")
    assert reconcile(cache, tmp_path, config, table, "--full") == (0, [], [])


@pytest.mark.skipif(shutil.which("docker") is None, reason="there is no container engine")
def test_the_image_reads_the_same(sandbox, cache):
    source = source_of(sandbox.config, docker_image=image(), use_host_network=True)
    source.check()
    source.read(cache=cache)
    assert_equal_to_service(cache, sandbox)
    sandbox.call("arrive", 5)
    assert source.read(cache=cache).processed_records < PEOPLE / 10
    assert_equal_to_service(cache, sandbox)


def blocks(page):
    """The Python of a page of the docs."""
    return re.findall(r"^```python\n(.*?)^```", (ROOT / "docs" / page).read_text(), re.M | re.S)


def test_docs_pyairbyte_md_installs_what_runs_here():
    (command,) = re.findall(r"^```sh\n(.*?)^```", (ROOT / "docs" / "pyairbyte.md").read_text(), re.M | re.S)
    name, version = command.split()[-1].split("==")
    assert importlib.metadata.version(name) == version


@pytest.mark.parametrize("code", blocks("pyairbyte.md"))
def test_the_code_of_docs_pyairbyte_md_runs(code, sandbox, tmp_path):
    if "docker_image" in code and shutil.which("docker") is None:
        pytest.skip("there is no container engine")
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    (bin_ / "source-contact-intelligence").symlink_to(EXECUTABLE)
    code = code.replace("https://contacts.example.com", sandbox.url).replace("svc_…", sandbox.key)
    ended = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{bin_}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
