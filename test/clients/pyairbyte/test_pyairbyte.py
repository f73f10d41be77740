"""A real destination: PyAirbyte reads the sandbox into DuckDB, several times over. Claims docs/pyairbyte.md."""

import datetime
import decimal
import importlib.metadata
import json
import re
import shutil
import subprocess
import sys

import airbyte as ab
import pytest
from airbyte.caches import DuckDBCache
from airbyte.exceptions import AirbyteConnectorCheckFailedError, AirbyteConnectorFailedError
from products import image, wheel
from sandbox_process import EXECUTABLE, Sandbox
from user_folder import blocks, path_with_program

KEYS = {"people": "id", "companies": "domain", "sources": "slug"}
UNLIMITED = {"requestsPerMinute": 0}


@pytest.fixture
def sandbox():
    with Sandbox(people=2000, **UNLIMITED) as running:
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


def query(cache, text):
    cursor = cache.get_sql_engine().raw_connection().cursor()
    cursor.execute(text)
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row)) for row in cursor.fetchall()]


def rows_of(cache, table):
    return query(cache, f"select columns(c -> c[1] <> '_') from contacts.{table}")


def plain(value):
    """A value of the service or of DuckDB, in one form."""
    if isinstance(value, str) and value[:1] in ("[", "{"):
        return json.loads(value)
    if isinstance(value, str) and re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+Z", value):
        return datetime.datetime.fromisoformat(value.replace("Z", "+00:00"))
    if isinstance(value, datetime.datetime):
        return value if value.tzinfo else value.replace(tzinfo=datetime.timezone.utc)
    return float(value) if isinstance(value, decimal.Decimal) else value


def assert_equal_to_service(cache, sandbox):
    for table, key in KEYS.items():
        rows = rows_of(cache, table)
        stored = {row[key]: row for row in rows}
        served = {row[key]: {name.lower(): plain(value) for name, value in row.items()} for row in sandbox.call(table)}
        assert len(rows) == len(served) and stored.keys() == served.keys(), table
        for id_, row in served.items():
            assert {name: plain(stored[id_][name]) for name in row} == row


@pytest.mark.parametrize("product", ["the command", "the wheel", "the image"])
def test_reads_all_and_later_what_is_new_with(product, sandbox, cache, tmp_path):
    if product == "the image" and shutil.which("docker") is None:
        pytest.skip("there is no container engine")
    ways = {
        "the command": dict,
        "the wheel": lambda: {"pip_url": wheel(), "install_root": tmp_path},
        "the image": lambda: {"docker_image": image(), "use_host_network": True},
    }
    source = source_of(sandbox.config, **ways[product]())
    source.check()
    assert source.get_available_streams() == list(KEYS)
    first = source.read(cache=cache).processed_records
    assert first == sum(len(sandbox.call(table)) for table in KEYS)
    assert_equal_to_service(cache, sandbox)
    for _ in range(2):
        sandbox.call("recheck", 30, {"isUser": True})
        sandbox.call("arrive", 20)
        sandbox.call("advance", 86_400_000)
        again = source.read(cache=cache).processed_records
        assert 0 < again < first / 10
        assert_equal_to_service(cache, sandbox)
    assert source.read(cache=cache).processed_records <= again, "nothing happened"


def test_a_field_that_appears_later_becomes_a_column(cache):
    same = {"people": 50, "now": "2026-11-21T10:00:00Z", **UNLIMITED}
    with Sandbox(companiesDated=False, **same) as before:
        source_of(before.config).read(cache=cache)
        assert "discoveredat" not in rows_of(cache, "companies")[0]
    with Sandbox(companiesDated=True, port=before.port, **same) as after:
        source_of(after.config).read(cache=cache)
        assert_equal_to_service(cache, after)


def test_a_read_that_fails_stores_nothing_and_buys_nothing_twice_and_the_next_one_reads_all(sandbox, cache, tmp_path):
    domains = ["1.example", "2.example", "3.example"]
    jobs = {
        "receipts_file": str(tmp_path / "receipts.jsonl"),
        "external_api": {"api_url": sandbox.url, "api_key": sandbox.key},
        "company_lookup": {"domains": domains},
    }
    source = source_of({**sandbox.config, **jobs})
    sandbox.call("fault", "status=403:path=/api/v1/public/companies:times=always")
    for _ in range(2):
        with pytest.raises(AirbyteConnectorFailedError, match="Exit Code: 1"):
            source.read(cache=cache)
        tables = query(cache, "select table_name from information_schema.tables where table_schema = 'contacts'")
        assert all(row["table_name"].startswith("_") for row in tables)
    sandbox.call("fault")
    for how in ({}, {}, {"force_full_refresh": True}):
        source.read(cache=cache, **how)
        assert_equal_to_service(cache, sandbox)
        assert sorted(row["domain"] for row in rows_of(cache, "company_lookups")) == domains
        assert len(rows_of(cache, "company_lookup_contacts")) == 1 + 2 + 3
    assert sorted(one["item"] for one in sandbox.call("submissions")) == domains


def test_a_failed_check_says_why(sandbox):
    with pytest.raises(AirbyteConnectorCheckFailedError, match="Cannot .*API key"):
        open_source({**sandbox.config, "api_key": "svc_00000000_" + "0" * 32}).check()


def test_people_who_are_gone_stay_until_the_table_is_replaced(cache):
    with Sandbox(people=40, undated=0, **UNLIMITED) as before:
        source_of(before.config).read(cache=cache)
    with Sandbox(people=30, undated=0, port=before.port, **UNLIMITED) as after:
        left = {row["id"] for row in after.call("people")}
        for how in ({}, {"force_full_refresh": True}):
            source_of(before.config).read(cache=cache, **how)
            assert {row["id"] for row in rows_of(cache, "people")} > left
        source_of(before.config).read(cache=cache, force_full_refresh=True, write_strategy="replace")
        assert {row["id"] for row in rows_of(cache, "people")} == left


def test_docs_pyairbyte_md_installs_what_runs_here():
    (command,) = blocks("sh", "pyairbyte.md")
    name, version = command.split()[-1].split("==")
    assert importlib.metadata.version(name) == version


@pytest.mark.parametrize("code", [code for code in blocks("python", "pyairbyte.md") if "get_source" in code])
def test_the_code_of_docs_pyairbyte_md_runs(code, sandbox, tmp_path, monkeypatch):
    if "docker_image" in code and shutil.which("docker") is None:
        pytest.skip("there is no container engine")
    monkeypatch.setenv("PATH", path_with_program(tmp_path))
    code = code.replace("https://contacts.example.com", sandbox.url).replace("svc_…", sandbox.key)
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
