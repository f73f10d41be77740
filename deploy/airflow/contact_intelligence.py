"""Two DAGs: the first load of a large account in shards, and the run that reads what is new every day.

Copy this file into the DAGs folder. Every worker needs the program on its PATH, a folder that all workers share, and
CONTACT_INTELLIGENCE_BASE_URL and CONTACT_INTELLIGENCE_API_KEY in its environment. See docs/airflow.md.
"""

import json
import os
import subprocess
from datetime import datetime, timedelta
from pathlib import Path

try:
    from airflow.sdk import dag, task
except ImportError:  # Airflow 2
    from airflow.decorators import dag, task
from airflow.exceptions import AirflowFailException

FOLDER = Path(os.environ.get("CONTACT_INTELLIGENCE_SHARED_FOLDER", "/data/contact-intelligence"))
SHARDS = int(os.environ.get("CONTACT_INTELLIGENCE_SHARDS", "10"))
SHARDS_AT_ONCE = int(os.environ.get("CONTACT_INTELLIGENCE_SHARDS_AT_ONCE", "4"))
# What is read. The first load shares the first of these streams among the workers; the daily run reads all of them.
STREAMS = os.environ.get("CONTACT_INTELLIGENCE_STREAMS", "people").split()

# Another number of shards makes another plan.
PLAN = FOLDER / f"plan-{STREAMS[0]}-{SHARDS}.jsonl"
ROWS = FOLDER / "contacts"
STATE = FOLDER / "state.json"
RETRIES = {"retries": 5, "retry_delay": timedelta(seconds=30)}


def run(*words: str, output: Path | None = None) -> None:
    """Runs the connector; what it prints appears whole in the output file, or not at all.

    Exit code 2 says that only a person can correct it, so that the task is not tried again.
    """
    part = Path(f"{output}.part") if output else Path(os.devnull)
    with part.open("w") as stdout:
        ended = subprocess.run(["source-contact-intelligence", *words], stdout=stdout, check=False)
    if ended.returncode == 2:
        raise AirflowFailException("exit code 2: the log above says what to correct")
    ended.check_returncode()
    if output:
        part.rename(output)


def plan_lines() -> list[dict]:
    return [json.loads(line) for line in PLAN.read_text().splitlines()]


@dag(
    dag_id="contact_intelligence_first_load",
    schedule=None,
    start_date=datetime(2026, 1, 1),
    catchup=False,
    max_active_runs=1,
    is_paused_upon_creation=False,  # it only runs when it is triggered
    tags=["contact-intelligence"],
)
def first_load():
    @task(**RETRIES)
    def plan() -> list[int]:
        """Cuts the account into shards, once, and returns the indexes of the closed ones."""
        FOLDER.mkdir(parents=True, exist_ok=True)
        if not PLAN.exists():
            share = ["--shards-at-once", str(SHARDS_AT_ONCE)]
            run("plan", "--stream", STREAMS[0], "--shards", str(SHARDS), *share, output=PLAN)
        return [line["shard"] for line in plan_lines() if line["to"] is not None]

    @task(max_active_tis_per_dag=SHARDS_AT_ONCE, **RETRIES)
    def read_shard(shard: int) -> None:
        """Reads one closed shard. These run in any order, anywhere, at the same time."""
        run("read", "--plan", str(PLAN), "--shard", str(shard), "--output", str(ROWS))

    @task(trigger_rule="none_failed", **RETRIES)
    def read_open_shard() -> None:
        """Reads up to now, best after all others: people who are checked again leave a past day for today."""
        run("read", "--plan", str(PLAN), "--shard", "open", "--output", str(ROWS))

    @task(**RETRIES)
    def merge() -> None:
        """Makes the state that the daily run starts from, of this plan's shards alone."""
        folders = sorted(str(folder) for folder in ROWS.glob("shard-*"))
        own = [folder for folder in folders if f"shard-{plan_lines()[0]['plan']}-" in folder]
        run("state", "merge", *own, output=STATE)
        for folder in set(folders) - set(own):
            print(f"{folder} is of another plan: remove it")

    read_shard.expand(shard=plan()) >> read_open_shard() >> merge()


@dag(
    dag_id="contact_intelligence_daily",
    schedule="0 2 * * *",
    start_date=datetime(2026, 1, 1),
    catchup=False,
    max_active_runs=1,
    tags=["contact-intelligence"],
)
def daily():
    @task(**RETRIES)
    def read_news() -> None:
        """Reads what is new or has changed. The first run starts from the state of the first load."""
        seed = [] if (ROWS / "state.json").exists() or not STATE.exists() else ["--state", str(STATE)]
        streams = [word for stream in STREAMS for word in ("--stream", stream)]
        run("read", "--output", str(ROWS), *streams, *seed)

    read_news()


first_load()
daily()
