"""What files hold, as docs/files.md says to read them: the newest row of each id, and the state of a stream."""

import gzip
import json
import pathlib


def files_of(folder, stream):
    """The committed files of a stream, of every shard and of the runs after them."""
    folder = pathlib.Path(folder)
    return sorted(
        path
        for path in folder.glob(f"**/{stream}/*.jsonl*")
        if not any(part.startswith(".") for part in path.relative_to(folder).parts)
    )


def rows_of(path):
    opened = gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else open(path, encoding="utf-8")
    with opened as lines:
        return [json.loads(line) for line in lines]


def newest_rows(folder, stream="people", key="id"):
    """By key: the row with the largest cursor; rows without one only where there is no other."""
    newest = {}
    for path in files_of(folder, stream):
        for row in rows_of(path):
            known = newest.get(row[key])
            if known is None or (row["discoveredAt"] or "") >= (known["discoveredAt"] or ""):
                newest[row[key]] = row
    return newest


def state_in(path, stream="people"):
    """The state of a stream, of a file with Airbyte's messages or with Singer's bookmarks."""
    saved = json.loads(pathlib.Path(path).read_text())
    if isinstance(saved, dict):
        return saved["bookmarks"][stream]
    return next(
        message["stream"]["stream_state"]
        for message in saved
        if message["stream"]["stream_descriptor"]["name"] == stream
    )
