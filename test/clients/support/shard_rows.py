"""What files hold, as docs/files.md says to read them: the newest row of each id, and the state of a stream."""

import gzip
import json
import pathlib


def rows_of(path):
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def newest_rows(folder, stream="people", key="id"):
    """By key, of all visible files: the row with the largest cursor; rows without one only where there is no other."""
    newest = {}
    for path in sorted(pathlib.Path(folder).glob(f"**/{stream}/*.jsonl*")):
        if any(part.startswith(".") for part in path.relative_to(folder).parts):
            continue
        for row in rows_of(path):
            known = newest.get(row[key])
            if known is None or (row["discoveredAt"] or "") >= (known["discoveredAt"] or ""):
                newest[row[key]] = row
    return newest


def state_of_people(path):
    """What `state merge` says of people."""
    return json.loads(path.read_text())["bookmarks"]["people"]
