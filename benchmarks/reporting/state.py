"""What a run has measured so far, so that a killed one goes on where it stopped."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


def state_path(out: Path) -> Path:
    """Name the state file that belongs to a results file."""
    return out.with_suffix(".state.jsonl")


def configuration_key(configuration: Mapping[str, Any]) -> str:
    text = json.dumps(configuration, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass
class State:
    """
    A JSONL file: a line about the run, then one entry a measured query, the last of a name counts.

    `head` says what the run is: its ``key`` and what its results are to say of it.
    """

    path: Path
    head: dict[str, Any] = field(default_factory=dict)
    entries: dict[str, dict[str, Any]] = field(default_factory=dict)

    def put(self, name: str, entry: dict[str, Any]) -> None:
        self.entries[name] = entry
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"name": name, **entry}) + "\n")


def open_state(path: Path, head: dict[str, Any], *, fresh: bool = False) -> State:
    """
    Go on with a run if its key is the same, or else start one.

    What another run has left is kept beside it, as ``.previous.jsonl``.
    """
    found = read_state(path)
    same = not fresh and found.head.get("key") == head["key"]
    if found.entries and not same:
        path.replace(path.with_suffix(".previous.jsonl"))
    state = State(path, found.head if same else head, found.entries if same else {})
    path.parent.mkdir(parents=True, exist_ok=True)
    temp = path.with_suffix(".part")
    lines = [state.head, *({"name": name, **entry} for name, entry in state.entries.items())]
    temp.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    temp.replace(path)
    return state


def read_state(path: Path) -> State:
    """Read a state file as far as it was written; empty if there is none."""
    state = State(path)
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    for number, line in enumerate(lines):
        try:
            found = json.loads(line)
        except json.JSONDecodeError:
            break
        if number == 0:
            state.head = found
        else:
            state.entries[found.pop("name")] = found
    return state
