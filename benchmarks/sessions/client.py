"""The parent's side of a worker: start it, ask it, give it up."""

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.paths import ROOT
from benchmarks.sessions.profiles import Profile

GRACE_SECONDS = 30.0
START_SECONDS = 3600.0


class WorkerLostError(RuntimeError):
    """The worker's process ended, or had to be killed; the next request starts another."""


class Client:
    """A worker process that is started when needed and restarted after a crash."""

    def __init__(
        self,
        profile: Profile,
        tables: Mapping[str, str],
        analyzed: Path | None,
        work: Path,
        settles: bool = True,
    ) -> None:
        self.profile = profile
        self.tables = dict(tables)
        self.analyzed = analyzed
        self.work = work
        self.command = [sys.executable, "-W", "ignore", "-m", "benchmarks.sessions.worker"]
        self.settles = settles
        self.grace = GRACE_SECONDS
        self.starts = 0
        self._process: subprocess.Popen[str] | None = None
        self._replies: queue.Queue[dict[str, Any] | None] = queue.Queue()

    def start(self) -> None:
        """Start the process and its session, unless it runs."""
        if self._process is not None:
            return
        self.starts += 1
        local = self.work / f"{self.profile.name}-local"
        local.mkdir(parents=True, exist_ok=True)
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "SPARK_LOCAL_DIRS": str(local)}
        with (self.work / f"{self.profile.name}.log").open("a") as log:
            self._process = subprocess.Popen(
                self.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                encoding="utf-8",
                cwd=self.work,
                env=environment,
                start_new_session=True,
            )
        self._replies = queue.Queue()
        threading.Thread(
            target=_pump, args=(self._process, self._replies), daemon=True, name=self.profile.name
        ).start()
        opened = self._exchange(
            {
                "cmd": "open",
                "conf": dict(self.profile.conf),
                "tables": self.tables,
                "analyzed": str(self.analyzed) if self.profile.analyzed else None,
                "settle": self.settles,
            },
            START_SECONDS,
        )
        if not opened["ok"]:
            self.kill()
            raise WorkerLostError(f"{self.profile.name} did not start: {opened['error']}")

    def ask(self, request: dict[str, Any], timeout: float) -> dict[str, Any]:
        try:
            self.start()
            return self._exchange(request, timeout)
        except (WorkerLostError, BrokenPipeError) as error:
            self.kill()
            return {"ok": False, "kind": "CRASH", "error": str(error)}

    def kill(self) -> None:
        """End the process and its JVM at once."""
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()

    def _exchange(self, request: dict[str, Any], timeout: float) -> dict[str, Any]:
        self._send(request)
        start = time.monotonic()
        try:
            return self._receive(timeout)
        except queue.Empty:
            taken = f"not done after {time.monotonic() - start:.0f} s"
        self._send({"cmd": "cancel"})
        try:
            self._receive(self.grace)
        except queue.Empty:
            self.kill()
        return {"ok": False, "kind": "TIMEOUT", "error": taken}

    def _send(self, request: dict[str, Any]) -> None:
        if self._process is None or self._process.stdin is None:
            raise WorkerLostError("the worker is not running")
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()

    def _receive(self, timeout: float) -> dict[str, Any]:
        reply = self._replies.get(timeout=timeout)
        if reply is None:
            raise WorkerLostError(f"the {self.profile.name} process ended; see its log")
        return reply


def _pump(process: subprocess.Popen[str], replies: queue.Queue[dict[str, Any] | None]) -> None:
    if process.stdout is not None:
        for line in process.stdout:
            replies.put(json.loads(line))
    replies.put(None)
