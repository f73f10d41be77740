"""A user's folder, with the program on the PATH and an empty database of PostgreSQL that the variables of psql name."""

import http.server
import json
import pathlib
import subprocess
import sys
import threading
import urllib.parse

import duckdb
import pytest
from sandbox_process import Sandbox
from user_folder import path_with_program


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    programs = pathlib.Path(sys.executable).parent  # the program duckdb
    monkeypatch.setenv("PATH", f"{path_with_program(tmp_path)}:{programs}")
    subprocess.run(["createdb", tmp_path.name], check=True)
    monkeypatch.setenv("PGDATABASE", tmp_path.name)
    return tmp_path


def shell(script):
    """Whether a script succeeds."""
    return subprocess.run(["bash", "-euo", "pipefail", "-c", script], timeout=120).returncode == 0


def query(statement):
    """The rows that a statement selects from the tables of `state show --sql duckdb`."""
    with duckdb.connect("contacts.db") as database:
        return database.execute(statement).fetchall()


def psql(script):
    """The rows that a script for PostgreSQL selects, each as a tuple of texts."""
    words = ["psql", "-qAt", "-F", "\t", "--pset=null=NULL", "-v", "ON_ERROR_STOP=1"]
    text = subprocess.run(words, input=script, check=True, stdout=subprocess.PIPE, text=True).stdout
    return [tuple(None if value == "NULL" else value for value in line.split("\t")) for line in text.splitlines()]


def serve(folder, people, **options):
    """A service, and the config file for it."""
    sandbox = Sandbox(people=people, undated=4, requestsPerMinute=0, **options)
    config = {**sandbox.config, "requests_per_minute": 6000}
    (folder / "config.json").write_text(json.dumps(config))
    return sandbox


class Rows(http.server.ThreadingHTTPServer):
    """A service that has these people, all of whom have a date."""

    def __init__(self, folder, rows):
        super().__init__(("127.0.0.1", 0), Answer)
        self.rows = rows
        url = f"http://127.0.0.1:{self.server_port}"
        config = {"base_url": url, "api_key": f"svc_{0:08}_{0:032}", "requests_per_minute": 6000}
        (folder / "config.json").write_text(json.dumps(config))
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        path, _, query = self.path.partition("?")
        asked = dict(urllib.parse.parse_qsl(query))
        first, last = asked.get("discovered_from", ""), asked.get("discovered_to", "9")
        rows = [row for row in self.server.rows if path.count("people") and first <= row["discoveredAt"][:10] <= last]
        page = {"success": True, "data": rows[:1], "pagination": {"page": 1, "limit": 1, "total": len(rows), "totalPages": 1}}
        lines = rows if path.endswith("stream") else [page]
        body = "".join(json.dumps(line) + "\n" for line in lines).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass
