# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs steps, every one even when an earlier one failed, and says in a table and one closing line how they ended."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

_TAIL = 60  # lines of a failed step's log that are shown
_PLAIN = {"NO_COLOR": "1", "PY_COLORS": "0", "ANSIBLE_NOCOLOR": "1"}  # for logs
_SIGN_OF_LIFE = 60.0  # seconds between lines about a step that still runs


@dataclass(frozen=True)
class Step:
    """One command. Counts as one passed or failed, or, with ``junit``, as the tests that it ran."""

    name: str
    command: Sequence[str]
    cwd: Path
    timeout: float = 600
    env: dict[str, str] = field(default_factory=dict)
    junit: Path | None = None
    needs: tuple[str, ...] = ()  # names of steps without whose success this one cannot pass
    vacuous: str = ""  # what the command prints when it had nothing to do, which counts as failed
    together: bool = False  # may run beside its neighbours that say the same
    cleans_up: bool = False  # runs when we are interrupted, too


@dataclass
class Outcome:
    """How a step ended."""

    step: Step
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: float = 0.0
    remark: str = ""

    @property
    def result(self) -> str:
        return "failed" if self.failed else "passed"


class Runner:
    """Keeps the logs and the running processes; ``show`` passes the output of steps through, too."""

    def __init__(self, logs: Path, show: bool) -> None:
        self.logs = logs
        self.show = show
        self.outcomes: dict[str, Outcome] = {}
        self._running: set[subprocess.Popen[str]] = set()
        self._stopping = False
        self._lock = threading.Lock()
        logs.mkdir(parents=True, exist_ok=True)

    def run(self, steps: Sequence[Step]) -> int:
        """Run all of them, print table and closing line, and return the exit status."""
        start = time.monotonic()
        try:
            for batch in _batches(steps):
                with ThreadPoolExecutor(max_workers=max(2, min(4, os.cpu_count() or 2))) as pool:
                    try:
                        list(pool.map(self._run_step, batch))
                    except KeyboardInterrupt:
                        self._stop()
                        raise
        except KeyboardInterrupt:
            self._say("Interrupted.")
            self._stopping = False
            for step in steps:
                if step.cleans_up:
                    self._run_step(step)
        for step in steps:
            self.outcomes.setdefault(step.name, Outcome(step, failed=1, remark="not run"))
        return self._report([self.outcomes[step.name] for step in steps], time.monotonic() - start)

    def _run_step(self, step: Step) -> None:
        if self._stopping:
            return
        missing = [name for name in step.needs if name in self.outcomes and self.outcomes[name].failed]
        if missing:
            outcome = Outcome(step, failed=1, remark=f"not run: {', '.join(missing)} failed")
        else:
            self._say(f"{step.name}: started, log in {self._log(step)}" if not step.together else f"{step.name} ...")
            outcome = self._execute(step)
        self.outcomes[step.name] = outcome
        self._say(f"{step.name}: {outcome.result} in {outcome.seconds:.1f} s {outcome.remark}".rstrip())
        if outcome.failed and not missing and not self.show:
            self._say(f"---- last lines of {self._log(step)}\n{self._tail(step)}\n----")

    def _execute(self, step: Step) -> Outcome:
        start = time.monotonic()
        if step.junit is not None:
            step.junit.unlink(missing_ok=True)
        with self._log(step).open("w", encoding="utf-8") as log:
            process = subprocess.Popen(
                step.command,
                cwd=step.cwd,
                env={**os.environ, **_PLAIN, **step.env},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                start_new_session=True,
            )
            self._running.add(process)
            reader = threading.Thread(target=self._copy_output, args=(process, log), daemon=True)
            reader.start()
            overdue = self._wait(step, process, start)
            self._running.discard(process)
            # A daemon that the step left behind can keep the pipe open; it does not keep us.
            reader.join(timeout=5)
        seconds = time.monotonic() - start
        remark = f"stopped after {step.timeout:.0f} s" if overdue else ""
        if step.junit is None:
            ok = process.returncode == 0 and not overdue
            if ok and step.vacuous and step.vacuous in self._log(step).read_text(encoding="utf-8", errors="replace"):
                ok, remark = False, step.vacuous
            return Outcome(step, passed=int(ok), failed=int(not ok), seconds=seconds, remark=remark)
        return _count_tests(step, process.returncode, seconds, remark)

    def _wait(self, step: Step, process: subprocess.Popen[str], start: float) -> bool:
        """Wait for its end, with a sign of life from time to time; True when it had to be stopped."""
        told = time.monotonic()
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=1)
                return False
            now = time.monotonic()
            if now - start > step.timeout:
                _end(process)
                return True
            if not self.show and now - told > _SIGN_OF_LIFE:
                told = now
                last = self._tail(step, lines=1).strip()[:120]
                self._say(f"{step.name}: {now - start:.0f} s so far. {last}".rstrip())

    def _copy_output(self, process: subprocess.Popen[str], log: object) -> None:
        for line in process.stdout or ():
            log.write(line)
            log.flush()
            if self.show:
                sys.stdout.write(line)
                sys.stdout.flush()

    def _stop(self) -> None:
        self._stopping = True
        for process in list(self._running):
            _end(process)

    def _report(self, outcomes: Sequence[Outcome], seconds: float) -> int:
        width = max(len(outcome.step.name) for outcome in outcomes)
        print(f"\n{'step':{width}}  result  {'passed':>6} {'failed':>6} {'skipped':>7} {'seconds':>8}")
        for outcome in outcomes:
            print(
                f"{outcome.step.name:{width}}  {outcome.result:6}  {outcome.passed:6} {outcome.failed:6}"
                f" {outcome.skipped:7} {outcome.seconds:8.1f}  {outcome.remark}".rstrip()
            )
        passed = sum(outcome.passed for outcome in outcomes)
        failed = sum(outcome.failed for outcome in outcomes)
        print(f"{seconds:.0f} seconds in all; logs in {self.logs}")
        print(f"{passed} passed, {failed} failed", flush=True)
        return 0 if passed and not failed else 1

    def _log(self, step: Step) -> Path:
        return self.logs / f"{step.name.replace(' ', '-')}.log"

    def _tail(self, step: Step, lines: int = _TAIL) -> str:
        text = self._log(step).read_text(encoding="utf-8", errors="replace")
        return "\n".join(text.rstrip("\n").split("\n")[-lines:])

    def _say(self, text: str) -> None:
        with self._lock:
            print(text, flush=True)


def _batches(steps: Sequence[Step]) -> list[list[Step]]:
    """Neighbours that may run together form one batch, all others stand alone."""
    batches: list[list[Step]] = []
    for step in steps:
        if step.together and batches and batches[-1][-1].together:
            batches[-1].append(step)
        else:
            batches.append([step])
    return batches


def _end(process: subprocess.Popen[str]) -> None:
    """End a step with everything that it started in its session."""
    for signum, patience in ((signal.SIGTERM, 60), (signal.SIGKILL, 5)):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signum)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=patience)
            return


def _count_tests(step: Step, status: int, seconds: float, remark: str) -> Outcome:
    """Count what pytest wrote; a run that ended badly, or ran no test, has failed whatever the file says."""
    outcome = Outcome(step, seconds=seconds, remark=remark)
    if step.junit is not None and step.junit.exists():
        for suite in ElementTree.parse(step.junit).getroot().iter("testsuite"):
            tests, errors, failures, skipped = (
                int(suite.get(name, "0")) for name in ("tests", "errors", "failures", "skipped")
            )
            outcome.failed += errors + failures
            outcome.skipped += skipped
            outcome.passed += tests - errors - failures - skipped
    if status and not outcome.failed:
        outcome.failed = 1
        outcome.remark = outcome.remark or f"exit status {status}"
    if not outcome.passed and not outcome.failed:
        outcome.failed = 1
        outcome.remark = "no test ran"
    return outcome
