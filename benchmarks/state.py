"""What a run has measured so far, so that a killed one goes on where it stopped."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def configuration_key(configuration: Mapping[str, Any]) -> str:
    """
    Identify a configuration.

    Parameters
    ----------
    configuration : mapping
        Everything that makes measurements comparable: commit, jar, confs, data, runs.

    Returns
    -------
    str
        The same for the same content, whatever its order.

    Examples
    --------
    >>> configuration_key({"a": 1, "b": 2}) == configuration_key({"b": 2, "a": 1})
    True
    """
    text = json.dumps(configuration, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class State:
    """
    A JSONL file: one line with the configuration's key, then one entry a measured query.

    Parameters
    ----------
    path : pathlib.Path
        The file.
    key : str
        Key of the configuration; a file with another one is started afresh.
    fresh : bool
        Start afresh in any case.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "state.jsonl"
    >>> State(path, "k").put("q01", {"row": 1})
    >>> State(path, "k").entries
    {'q01': {'row': 1}}
    >>> State(path, "other").entries
    {}
    """

    def __init__(self, path: Path, key: str, *, fresh: bool = False) -> None:
        self.path = path
        self.key = key
        self.entries: dict[str, dict[str, Any]] = {}
        if not fresh and path.is_file():
            self.entries = read_entries(path, key)
        path.parent.mkdir(parents=True, exist_ok=True)
        temp = path.with_suffix(".part")
        lines = [json.dumps({"key": key})]
        lines += [json.dumps({"name": name, **entry}) for name, entry in self.entries.items()]
        temp.write_text("\n".join(lines) + "\n")
        temp.replace(path)

    def put(self, name: str, entry: dict[str, Any]) -> None:
        """
        Add an entry, or replace the one of that name.

        Parameters
        ----------
        name : str
            Name of the query.
        entry : dict
            What was measured.
        """
        self.entries[name] = entry
        with self.path.open("a") as file:
            file.write(json.dumps({"name": name, **entry}) + "\n")


def read_entries(path: Path, key: str | None = None) -> dict[str, dict[str, Any]]:
    """
    Read the entries of a state file.

    Parameters
    ----------
    path : pathlib.Path
        The file.
    key : str or None
        Key that it must have; None takes any.

    Returns
    -------
    dict of str to dict
        The last entry of every name; none if the key is another. A last line cut short by a kill
        is left out.

    Examples
    --------
    >>> read_entries(Path("/dev/null"))
    {}
    """
    entries: dict[str, dict[str, Any]] = {}
    for number, line in enumerate(path.read_text().splitlines()):
        try:
            found = json.loads(line)
        except json.JSONDecodeError:
            break
        if number == 0:
            if key is not None and found.get("key") != key:
                return {}
            continue
        entries[found.pop("name")] = found
    return entries
