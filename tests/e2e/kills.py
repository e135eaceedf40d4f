#!/usr/bin/env python3
"""kills - what must not matter: killed brokers and supervisors, cancels at any moment, a full disk, a
store from a backup, members that hang or talk nonsense, members that fall silent.

Each part is a federation of its own. The ledger is the judge: every job appends one line when it starts.

usage: kills.py PROGRAM CLUSTER_SCRIPT [--only PART[,PART...]] [--rounds N] [--seed N]
"""

import argparse
import collections
import contextlib
import http.client
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import socketserver
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error

from federation import Broker as PlainBroker, Slurm, fail, wait_until

LOST = (OSError, http.client.HTTPException, ValueError) # an answer that did not come, or not whole
FINAL = ("succeeded", "failed", "cancelled", "expired")

HEAD = """\
version: 1
federation: kills
state: {state}
server: {{listen: "127.0.0.1:0"}}
store: sqlite:{state}/tieline.db
policy: {state}/policy.yaml
clusters:
"""
LOCAL = """\
  {name}:
    adapter: local
    kind: owned
    probe: 1s
    grace: 1s
    capacity: {{cpus: {cpus}, memory: 1GiB}}
    max_waiting: {waiting}
"""
RENTED = """\
  rent:
    adapter: local
    kind: on-demand
    probe: 1s
    grace: 1s
    max_waiting: 4
    nodes: {vm: {cpus: 4, memory: 1GiB, price: 0.80 EUR/h, at_most: 4}}
"""
SLURM = """\
  {name}:
    adapter: slurm
    kind: owned
    probe: {probe}
    requests: 50/s
    connect: {{via: rest, url: "{url}", user: slurm, token: {{file: {token}}}}}
    workdir: {work}
    places:
      main: {{partition: main, max_waiting: {waiting}}}
"""
POLICY = """\
version: 1
currency: EUR
default_class: batch
classes:
  batch: {order: 1, share: 70%, waiting: 1 EUR/h, time: {limit: 5m, estimate: 5s}, needs: {cpus: 1, memory: 16MiB}}
routes:
  - name: anywhere
    tiers:
      - {places: [PLACES], leave_free: 0%}
"""
RENT_POLICY = """\
version: 1
currency: EUR
default_class: batch
classes:
  batch: {order: 1, share: 70%, waiting: 4 EUR/h, time: {limit: 5m, estimate: 5s}, needs: {cpus: 1, memory: 16MiB}}
budgets:
  money: {limit: 50 EUR, per: month}
bursts:
  overflow:
    open:  [{pending: 10}]
    close: {pending: 2, for: 1s}
    at_most: {jobs: 20}
    budget: money
routes:
  - name: anywhere
    tiers:
      - {places: [PLACES]}
      - {places: rent, burst: overflow}
"""


class Broker(PlainBroker):
    def __init__(self, program, state, log_path):
        super().__init__(program, state)
        self.log.close()
        self.log_path = log_path # beside the state directory, whose disk may be full
        self.log = open(log_path, "ab")

    def start(self, *arguments, ready=True):
        if self.process and self.process.poll() is None:
            fail("it still runs")
        self.log.write(b"---- start\n")
        self.log.flush()
        self.mark = self.log.tell()
        self.process = subprocess.Popen(
            [self.program, "serve", "--config", str(self.state / "tieline.yaml"), *arguments],
            stdout=self.log, stderr=self.log, start_new_session=True)
        if ready:
            wait_until("the broker is ready", self.is_ready if ready is True else ready, 60, 0.05)

    def said(self):
        """The log since the last start."""
        return self.log_path.read_bytes()[self.mark:].decode(errors="replace")

    def serves(self):
        if self.process.poll() is not None:
            fail(f"the broker ended with {self.process.returncode}: {self.said()[-4000:]}")
        said = self.said().rsplit(" serves at ", 1)
        if len(said) < 2:
            return False
        self.url = said[1].split()[0]
        return True

    def is_ready(self):
        try:
            return self.serves() and self.get("/readyz") is not None
        except LOST:
            return False

    def problem(self, method, path, body=None, content_type="application/json"):
        """Status and body of a request that may be refused."""
        try:
            return 200, json.loads(self.request(method, path, body, None, content_type) or "{}")
        except urllib.error.HTTPError as err:
            text = err.read().decode()
            return err.code, json.loads(text) if text else {}

    def job(self, id):
        return self.get(f"/v1/jobs/{id}")

    def submit(self, jobs, key=None):
        body = "\n".join(json.dumps(job) for job in jobs).encode()
        headers = {"Idempotency-Key": f'"{key}"'} if key else {}
        reply = json.loads(self.request("POST", "/v1/jobs", body, headers, "application/x-ndjson"))
        return reply["jobs"]

    def submit_all(self, jobs, key=None):
        items = self.submit(jobs, key)
        bad = [item for item in items if "id" not in item]
        if bad:
            fail(f"not accepted: {bad[0]}")
        return [item["id"] for item in items]

    def cancel(self, id):
        return self.problem("DELETE", f"/v1/jobs/{id}")

    def wait_final(self, id, seconds=60):
        return wait_until(f"{id} is final", lambda: (j := self.job(id))["state"] in FINAL and j, seconds)

    def wait_state(self, id, state, seconds=60):
        return wait_until(f"{id} is {state}", lambda: (j := self.job(id))["state"] == state and j,
                          seconds, 0.1)


class Lab:
    """A directory with a configuration, a policy, a ledger and a broker that is not started yet."""

    def __init__(self, program, script, name, clusters, policy=None, places=None, state=None):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix=f"tieline-kills-{name}."))
        os.chmod(self.root, 0o755)
        self.script = script
        self.state = state or self.root / "state"
        self.work = self.root / "work"
        self.state.mkdir(exist_ok=True)
        self.work.mkdir()
        os.chmod(self.work, 0o1777)
        self.ledger = self.work / "ledger"
        self.ledger.touch()
        os.chmod(self.ledger, 0o666)
        self.clusters, self.slurms = clusters, []
        places = places or ", ".join(self.names(clusters))
        (self.state / "policy.yaml").write_text((policy or POLICY).replace("PLACES", places))
        self.configure(clusters)
        self.broker = Broker(program, self.state, self.root / "broker.log")

    @staticmethod
    def names(text):
        return [line.strip(" :") for line in text.splitlines()
                if line.startswith("  ") and not line.startswith("   ") and line.strip() != "rent:"]

    def configure(self, clusters):
        (self.state / "tieline.yaml").write_text(HEAD.format(state=self.state) + clusters)

    def job(self, name, seconds=0.2, code=0, **more):
        return {"name": name, "run": f'echo "$TIELINE_JOB $TIELINE_ATTEMPT" >> {self.ledger}\n'
                                     f"sleep {seconds}\nexit {code}\n", **more}

    def lines(self):
        return collections.Counter(line.split()[0] for line in self.ledger.read_text().splitlines())

    def processes(self, *words):
        """Pids of this federation's processes: its directory stands in their words or their environment."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            try:
                text = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                comm = (entry / "comm").read_text().strip()
            except OSError:
                continue
            if str(self.root) in text or str(self.state) in text:
                if all(word in f"{comm} {text}" for word in words):
                    found.append(int(entry.name))
        return found

    def supervisors(self):
        return [pid for pid in self.processes("supervise")
                if not self.processes_comm(pid).startswith("tieline-keeper")]

    @staticmethod
    def processes_comm(pid):
        try:
            return pathlib.Path(f"/proc/{pid}/comm").read_text()
        except OSError:
            return "tieline-keeper"

    def check(self, ids, cancelled=()):
        """The promise: one line for each job that was not cancelled, at most one for others."""
        jobs = {job["id"]: job for job in self.broker.jobs()}
        lines = self.lines()
        if set(jobs) != set(ids):
            fail(f"listed and accepted differ: {sorted(set(jobs) ^ set(ids))[:5]}")
        for id, job in jobs.items():
            want = {1} if id not in cancelled else {0, 1}
            states = {"succeeded"} if id not in cancelled else {"succeeded", "cancelled"}
            if job["state"] not in states or lines[id] not in want or not job.get("reason"):
                fail(f"{lines[id]} lines, cancelled: {id in cancelled}: {json.dumps(self.broker.job(id))}\n"
                     f"{json.dumps(self.broker.get(f'/v1/jobs/{id}/events'))}")
        for id in set(lines) - set(ids):
            fail(f"a job that nobody was told of ran: {id}")
        return jobs

    def check_still(self):
        """Nothing is booked and nothing is counted when nothing is live."""
        for state in ("held", "queued", "active", "cancelling"):
            if self.broker.metric("tieline_jobs", state=state):
                fail(f"/metrics still counts {state} jobs")
        for place in self.broker.get("/v1/places")["places"]:
            if place["running"] or place["waiting"]:
                fail(f"still booked: {place}")
        bursts = self.broker.get("/v1/bursts")
        for budget in bursts["budgets"]:
            if float(budget["booked"].split()[0]) != 0:
                fail(f"still booked: {budget}")
        return bursts

    def reload(self, old, new):
        """Another policy, by SIGHUP."""
        live, file = self.broker.get("/v1/policy")["hash"], self.state / "policy.yaml"
        file.write_text(file.read_text().replace(old, new))
        self.broker.process.send_signal(signal.SIGHUP)
        wait_until("the new policy is live", lambda: self.broker.get("/v1/policy")["hash"] != live, 20)

    def slurm(self, name, *options):
        slurm = Slurm(self.script, name, self.root / name, *options)
        self.slurms.append(slurm)
        return slurm

    def sick(self):
        for word in ("AddressSanitizer", "LeakSanitizer", "runtime error:", "tieline: memory"):
            text = self.broker.log_path.read_text(errors="replace")
            if word in text:
                at = text.index(word)
                return text[max(0, at - 500):at + 5000]
        return None

    def end(self):
        """In order; what is found wrong now fails the part too."""
        self.broker.stop()
        sick = self.sick()
        if sick:
            fail(f"a sanitizer's finding: {sick}")
        wait_until("no process is left", lambda: not self.processes(str(self.broker.program)), 75)

    def close(self, failed):
        """Leaves nothing behind, whatever happened."""
        if failed:
            sys.stdout.write(f"---- the broker's log ends with\n{self.log_end()}\n")
        for pid in self.processes():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        if self.broker.process:
            self.broker.process.wait()
        for slurm in self.slurms:
            slurm.stop()
        if failed and os.environ.get("KILLS_KEEP"):
            print(f"kept: {self.root}")
        else:
            shutil.rmtree(self.root, ignore_errors=True)

    def log_end(self):
        return self.broker.log_path.read_text(errors="replace")[-5000:]


@contextlib.contextmanager
def lab(*arguments, **options):
    made = Lab(*arguments, **options)
    failed = True
    try:
        yield made
        made.end()
        failed = False
    finally:
        made.close(failed)


# ---------------------------------------------------------------------------------------------- parts

def part_local(options):
    """Local members: kills of brokers and supervisors, cancels, the same bulk again and again."""
    count, kills = 100 * options.rounds + 100, 8 * options.rounds + 8
    dice = random.Random(options.seed)
    clusters = (LOCAL.format(name="east", cpus=4, waiting=3) +
                LOCAL.format(name="west", cpus=3, waiting=2) + RENTED)
    with lab(options.program, options.script, "local", clusters, RENT_POLICY) as it:
        jobs = [it.job(f"k{i}", round(dice.uniform(0.02, 0.6), 2)) for i in range(count)]
        broker, cancelled, ids, downs = it.broker, set(), None, 0
        broker.start()
        # The first bulk is cut off by a kill more often than not: it is sent again with its key.
        for n in range(kills):
            try:
                known = broker.submit_all(jobs, "bulk")
                if ids and known != ids[:len(known)]:
                    fail("the same bulk with the same key made other jobs")
                ids = known
                while dice.random() < 0.6:
                    id = dice.choice(ids)
                    cancelled.add(id) # asked is enough: whether it was heard is not known
                    broker.cancel(id)
            except LOST as err:
                fail(f"a live broker did not answer: {err!r}")
            time.sleep(dice.uniform(0, 0.8))
            broker.kill()
            downs += 1
            for _ in range(dice.choice((0, 0, 0, 1, 3))): # killed again while it starts
                broker.start(ready=False)
                time.sleep(dice.uniform(0, 0.1 if dice.random() < 0.6 else 0.5))
                broker.kill()
                downs += 1
            if dice.random() < 0.5:
                for pid in it.supervisors():
                    os.kill(pid, signal.SIGKILL)
                    downs += 1
            broker.start()
        ids = broker.submit_all(jobs, "bulk")
        wait_until("every job is final", lambda: not broker.jobs("&state=live"), 180, 0.5)
        it.check(ids, cancelled)
        money = it.check_still()
        print(f"local: {count} jobs, {downs} kills, {len(cancelled)} cancels, {money['budgets']}")


def part_cancel(options):
    """A cancel in each state; a second one; of what is over."""
    with lab(options.program, options.script, "cancel", LOCAL.format(name="only", cpus=1, waiting=1)) as it:
        broker = it.broker
        broker.start()
        running = broker.submit_all([it.job("running", 300)])[0]
        broker.wait_state(running, "running")
        waiting = broker.submit_all([it.job("waiting", 300)])[0]
        broker.wait_state(waiting, "dispatched")
        queued = broker.submit_all([it.job("queued", 300)])[0]
        broker.wait_state(queued, "queued")
        for id in (queued, waiting, running):
            status, body = broker.cancel(id)
            again, _ = broker.cancel(id)
            if status != 200 or again != 200:
                fail(f"cancel of {id}: {status} {body}, again: {again}")
            job = broker.wait_final(id)
            if job["state"] != "cancelled":
                fail(f"not cancelled: {job}")
        if broker.cancel(running)[0] != 200 or broker.cancel("j00000000000000")[0] != 404:
            fail("a cancel of what is over, or of nothing, is answered wrongly")
        # Placed and not yet answered: the supervisor sleeps.
        for pid in it.supervisors():
            os.kill(pid, signal.SIGSTOP)
        placed = broker.submit_all([it.job("placed", 300)])[0]
        broker.wait_state(placed, "placed")
        status, body = broker.cancel(placed)
        if status != 200 or body["state"] != "cancelling":
            fail(f"cancel of a placed job: {status} {body}")
        for pid in it.supervisors():
            os.kill(pid, signal.SIGCONT)
        if broker.wait_final(placed)["state"] != "cancelled":
            fail("the placed job was not cancelled")
        # Ignores TERM: killed after the grace. Its end is not its own.
        deaf = broker.submit_all([{"name": "deaf", "run": "trap '' TERM\nsleep 300 & sleep 300\nwait\n"}])[0]
        broker.wait_state(deaf, "running")
        broker.cancel(deaf)
        if broker.wait_final(deaf)["state"] != "cancelled":
            fail("the deaf job was not cancelled")
        it.check_still()
        if it.processes("sleep 300"):
            fail("a cancelled job's process is left")
    print("cancel: in every state")


def part_unknown(options):
    """A member that falls silent for more than 30 s: unknown, found again, nothing run twice."""
    clusters = LOCAL.format(name="near", cpus=2, waiting=2) + LOCAL.format(name="far", cpus=2, waiting=2)
    with lab(options.program, options.script, "unknown", clusters) as it:
        broker = it.broker
        broker.start()
        ids = broker.submit_all(
            [it.job(f"long{i}", 75, where={"require": {"places": "near" if i < 2 else "far"}})
             for i in range(4)] + [it.job(f"short{i}", 1) for i in range(4)])
        for id in ids[:4]:
            broker.wait_state(id, "running")
        far = [pid for pid in it.supervisors() if "/far" in
               pathlib.Path(f"/proc/{pid}/cmdline").read_text()]
        for pid in far:
            os.kill(pid, signal.SIGSTOP)
        # A long one: a short one may have ended unseen, and is then rightly no longer cancelled.
        unknown = wait_until("jobs are unknown", lambda: [job for job in broker.jobs("&state=active")
                                                          if job["state"] == "unknown"
                                                          and job["name"].startswith("long")], 60, 1)
        dropped = unknown[0]["id"]
        status, body = broker.cancel(dropped)
        if status != 200 or body["state"] != "cancelling":
            fail(f"cancel of an unknown job: {status} {body}")
        for pid in far:
            os.kill(pid, signal.SIGCONT)
        wait_until("every job is final", lambda: not broker.jobs("&state=live"), 120, 0.5)
        jobs = it.check(ids, {dropped})
        if jobs[dropped]["state"] != "cancelled":
            fail(f"the unknown job was not cancelled: {jobs[dropped]}")
        it.check_still()
    print(f"unknown: {len(unknown)} jobs were unknown, none run twice")


def part_persist(options):
    """Drains, bursts and budgets over a kill; SIGHUP; two SIGTERMs; one under load."""
    clusters = LOCAL.format(name="east", cpus=2, waiting=1) + RENTED
    with lab(options.program, options.script, "persist", clusters, RENT_POLICY) as it:
        broker = it.broker
        broker.start()
        broker.request("POST", "/v1/places/east/drain", json.dumps({"note": "a disk"}).encode())
        broker.kill()
        broker.start()
        place = wait_until("the place is drained still", lambda: next(
            (p for p in broker.get("/v1/places")["places"]
             if p["cluster"] == "east" and p["state"] == "drained"), None), 20)
        if place["reason"] != "a disk":
            fail(f"the drain is forgotten: {place}")
        broker.request("POST", "/v1/places/east/undrain", b"{}")
        broker.kill()
        broker.start()
        wait_until("the place is ok", lambda: next(
            p for p in broker.get("/v1/places")["places"] if p["cluster"] == "east")["state"] == "ok", 20)
        ids = broker.submit_all([it.job(f"p{i}", 2) for i in range(40)])
        wait_until("the burst is open", lambda: broker.get("/v1/bursts")["bursts"][0]["state"] == "open", 30)
        wait_until("the rent is booked", lambda: broker.metric("tieline_burst_jobs", burst="overflow"), 30)
        wait_until("some rent is settled", lambda: broker.metric("tieline_budget_settled", budget="money"), 60)
        broker.kill()
        before = sqlite3.connect(it.state / "tieline.db").execute(
            "select text from docs where id = 'budgets' order by at_ms desc").fetchone() \
            if options.rounds < 0 else None
        broker.start()
        if broker.get("/v1/bursts")["bursts"][0]["state"] not in ("open", "closing"):
            fail("the burst is forgotten")
        if not broker.metric("tieline_budget_settled", budget="money"):
            fail(f"the budget is forgotten {before}")
        wait_until("the open attempts are booked again",
                   lambda: broker.metric("tieline_budget_committed", budget="money") >
                   broker.metric("tieline_budget_settled", budget="money"), 20)

        live = broker.get("/v1/policy")["hash"]
        good = (it.state / "policy.yaml").read_text()
        (it.state / "policy.yaml").write_text(good + "nonsense: 1\n")
        broker.process.send_signal(signal.SIGHUP)
        wait_until("the bad policy is refused", lambda: "was not taken" in broker.said(), 20)
        if broker.get("/v1/policy")["hash"] != live:
            fail("a bad policy is live")
        (it.state / "policy.yaml").write_text(good.replace("waiting: 4 EUR/h", "waiting: 5 EUR/h"))
        for _ in range(20):
            broker.process.send_signal(signal.SIGHUP)
        wait_until("the good policy is live", lambda: broker.get("/v1/policy")["hash"] != live, 20)
        (it.state / "policy.yaml").write_text(good)
        broker.process.send_signal(signal.SIGHUP)
        wait_until("the first policy is live again", lambda: broker.get("/v1/policy")["hash"] == live, 20)
        wait_until("every job is final", lambda: not broker.jobs("&state=live"), 120, 0.5)
        it.check(ids)
        it.check_still()
    print("persist: drains, bursts, budgets and policies outlive the broker")


def stop_under_load(it, options, dice):
    """SIGTERM while bulks, long polls, logs and cancels are under way."""
    broker = it.broker
    accepted, lost = [], []

    def bulk(n):
        try:
            accepted.extend(item["id"] for item in
                            broker.submit([it.job(f"b{n}-{i}", 0.1) for i in range(4000)], f"load-{n}-{options.turn}")
                            if "id" in item)
        except LOST as err:
            lost.append(err)

    def reader(path):
        try:
            while True:
                broker.request("GET", path)
        except LOST:
            pass

    def canceller():
        try:
            for job in broker.jobs("&state=live")[:100]:
                broker.request("DELETE", f"/v1/jobs/{job['id']}")
        except LOST:
            pass

    first = broker.submit_all([it.job("first", 2)])[0]
    threads = [threading.Thread(target=bulk, args=(n,)) for n in range(3)]
    paths = (f"/v1/jobs/{first}?wait=20s", "/v1/events?wait=20s&cursor=99999999", "/v1/jobs?limit=1000",
             f"/v1/jobs/{first}/log?follow=true", f"/v1/jobs/{first}/explain", "/v1/places", "/metrics")
    threads += [threading.Thread(target=reader, args=(path,)) for path in paths]
    threads.append(threading.Thread(target=canceller))
    for thread in threads:
        thread.start()
    time.sleep(dice.uniform(0, 2.5))
    begin = time.monotonic()
    broker.process.terminate()
    if options.turn % 3 == 2:
        time.sleep(dice.uniform(0, 0.3))
        broker.process.terminate()
    try:
        status = broker.process.wait(20)
    except subprocess.TimeoutExpired:
        broker.process.send_signal(signal.SIGABRT)
        fail("the broker did not stop within 20 s of SIGTERM")
    took = time.monotonic() - begin
    for thread in threads:
        thread.join(30)
    if took > 10 or (status != 0 and options.turn % 3 != 2) or status not in (0, -signal.SIGTERM):
        fail(f"SIGTERM: {took:.1f} s, status {status}: {it.log_end()}")
    return took, accepted


def part_stop(options):
    """SIGTERM under load: in time, status 0, nothing leaked; what was accepted is there afterwards."""
    dice = random.Random(options.seed)
    clusters = LOCAL.format(name="east", cpus=4, waiting=4)
    with lab(options.program, options.script, "stop", clusters) as it:
        times = []
        for options.turn in range(3 * options.rounds):
            it.broker.start()
            took, accepted = stop_under_load(it, options, dice)
            times.append(round(took, 1))
            it.broker.start()
            known = {job["id"] for job in it.broker.jobs()}
            if set(accepted) - known:
                fail(f"{len(set(accepted) - known)} accepted jobs are gone")
            more = [name for name, count in it.lines().items() if count > 1]
            if more:
                fail(f"ran twice: {more[:5]}")
            it.broker.stop()
            if it.sick():
                fail(it.sick())
            # The next turn begins with an empty store: what is left would only take time.
            for name in ("tieline.db", "tieline.db-wal", "tieline.db-shm"):
                (it.state / name).unlink(missing_ok=True)
            wait_until("the supervisor ended", lambda: not it.processes("supervise"), 30)
            shutil.rmtree(it.state / "local", ignore_errors=True)
            it.ledger.write_text("")
        it.broker.start()
    print(f"stop: SIGTERM under load took {times} s")


def part_backup(options):
    """A store from a backup: nothing is done until a person accepts the world; nothing runs twice."""
    clusters = LOCAL.format(name="east", cpus=2, waiting=1) + LOCAL.format(name="west", cpus=2, waiting=1)
    with lab(options.program, options.script, "backup", clusters) as it:
        broker, db = it.broker, it.state / "tieline.db"
        broker.start()
        # One job of the backup is over before it; four wait then, and begin or end after it.
        over = broker.submit_all([it.job("over", 0.1)])
        broker.wait_final(over[0])
        it.reload("leave_free: 0%", "leave_free: 99%")
        known = broker.submit_all([it.job("long-1", 12), it.job("long-2", 12), it.job("short-1", 3),
                                   it.job("short-2", 3, 7)])
        copy = sqlite3.connect(it.root / "copy.db")
        sqlite3.connect(db).backup(copy)
        copy.close()
        it.reload("leave_free: 99%", "leave_free: 0%")
        wait_until("four began", lambda: all(it.lines()[id] for id in known), 30)
        # What ends while the broker is there is forgotten by its member: that no backup could learn again.
        later = broker.submit_all([it.job("later", 8)]) # of this one the backup has never heard
        broker.kill()
        wait_until("the short ones are over", lambda: len(it.processes("keeper")) <= 2, 30)
        for name in ("tieline.db", "tieline.db-wal", "tieline.db-shm"):
            (it.state / name).unlink(missing_ok=True)
        shutil.copy(it.root / "copy.db", db)

        broker.start(ready=broker.serves)
        wait_until("it is recovering", lambda: broker.problem("GET", "/readyz")[0] == 503 and
                   "recovering" in json.dumps(broker.problem("GET", "/readyz")[1]), 20)
        fresh = broker.submit_all([it.job("fresh", 0.1)])
        broker.cancel(known[0]) # is noted, and not done yet
        end = time.monotonic() + 8
        while time.monotonic() < end:
            if broker.metric("tieline_events_total", kind="place") or it.lines()[fresh[0]]:
                fail("something was placed while recovering")
            if broker.is_ready():
                fail("it is ready while recovering")
            time.sleep(0.5)
        broker.stop()
        broker.start("--accept-world")
        wait_until("every job is final", lambda: not broker.jobs("&state=live"), 120, 0.5)
        if later[0] in {job["id"] for job in broker.jobs()}:
            fail("the backup knows what came after it")
        wait_until("the job nobody knows is over", lambda: not it.processes("keeper"), 60)
        lines = it.lines()
        more = {id: count for id, count in lines.items() if count > 1}
        if more:
            fail(f"ran twice: {[broker.job(id) for id in more if id in known]}")
        states = {id: broker.job(id) for id in over + known + fresh}
        want = {over[0]: "succeeded", known[0]: "cancelled", known[1]: "succeeded", known[2]: "succeeded",
                known[3]: "failed", fresh[0]: "succeeded"}
        wrong = [job for id, job in states.items() if job["state"] != want[id]]
        if wrong or states[known[3]]["attempts"][0]["exit_code"] != 7:
            fail(f"not as it was: {json.dumps(wrong)} {json.dumps(states[known[3]])}")
        it.check_still()
    print("backup: it watched, and went on when told; nothing ran twice")


@contextlib.contextmanager
def small_disk(size):
    """A file system of its own that can be filled up; skipped where mounting is not allowed."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="tieline-kills-disk."))
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(path)],
                          stderr=subprocess.PIPE, text=True)
    if done.returncode:
        path.rmdir()
        yield None
        return
    try:
        yield path
    finally:
        subprocess.run(["umount", "-l", str(path)], check=True)
        path.rmdir()


def fill(path):
    """Takes all the space that is left; removed, it is there again."""
    hog = path / "hog"
    with open(hog, "ab", buffering=0) as out:
        for size in (65536, 4096, 512, 1):
            with contextlib.suppress(OSError):
                while out.write(b"x" * size) == size:
                    pass
    return hog


def part_disk(options):
    """The disk fills up; a second broker; a store that cannot be opened."""
    with small_disk("24m") as disk:
        if not disk:
            print("disk: skipped: no file system can be mounted here")
            return
        clusters = LOCAL.format(name="east", cpus=3, waiting=2)
        state = disk / "state"
        with lab(options.program, options.script, "disk", clusters, state=state) as it:
            disk_full(it, disk)
            it.broker.stop()
            store_refused(it)
    print("disk: full, and room again; refusals are clear")


def disk_full(it, disk):
    broker, ids = it.broker, []
    broker.start()
    for turn in range(3):
        ids += broker.submit_all([it.job(f"d{turn}-{i}", 0.6) for i in range(12)], f"disk-{turn}")
        wait_until("some run", lambda: len(it.lines()) > 12 * turn + 2, 30)
        hog = fill(disk)
        refused = None
        def is_refused(n=[0]):
            nonlocal refused
            n[0] += 1
            status, body = broker.problem("POST", "/v1/jobs",
                                          json.dumps(it.job(f"no-{turn}-{n[0]}", 0.1)).encode())
            if status == 200:
                ids.append(body["id"])
                return False
            refused = status, body
            return True
        wait_until("a submit is refused", is_refused, 30, 0.01)
        if refused[0] not in (503, 507) or "detail" not in refused[1]:
            fail(f"a full disk is answered with {refused}")
        wait_until("/readyz fails", lambda: broker.problem("GET", "/readyz")[0] == 503, 10)
        if not broker.metric("tieline_store_failing"):
            fail("the metric does not say that the store fails")
        time.sleep(4)
        said = broker.said().count("\n")
        if said > 2000:
            fail(f"{said} lines of log for a full disk")
        if turn == 1:
            broker.kill() # nothing of what was answered may be lost by that
            hog.unlink()
            broker.start()
        else:
            hog.unlink()
        wait_until("it is ready again", broker.is_ready, 20)
    wait_until("every job is final", lambda: not broker.jobs("&state=live"), 120, 0.5)
    it.check(ids)
    it.check_still()


def store_refused(it):
    broker, db = it.broker, it.state / "tieline.db"

    def refuses(word):
        process = subprocess.run([broker.program, "serve", "--config", str(it.state / "tieline.yaml")],
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=30)
        if process.returncode == 0 or word not in process.stdout or "Sanitizer" in process.stdout:
            fail(f"expected '{word}', status {process.returncode}: {process.stdout}")

    broker.start()
    refuses("in use by another broker")
    broker.stop()
    whole = db.read_bytes()
    db.write_bytes(b"this is no database at all " * 200)
    refuses("tieline.db")
    db.write_bytes(whole[:len(whole) // 2 // 4096 * 4096])
    refuses("tieline.db")
    db.unlink()
    db.mkdir()
    refuses("tieline.db")
    db.rmdir()
    db.write_bytes(whole)


NASTY = {
    "html": b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 46\r\n\r\n"
            b"<html><body>please log in here</body></html>\r\n",
    "half": b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 4096\r\n\r\n"
            b'{"meta": {"plugin"',
    "garbage": b"\x00\x01\xff not HTTP at all\r\n\r\n",
    "empty": b"",
    "deep": b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 200000\r\n\r\n" + b"[" * 200000,
    "wrong": b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 27\r\n\r\n"
             b'{"jobs": 7, "errors": "no"}',
    "endless": None, "silent": None, "drip": None,
}


class Nasty(socketserver.BaseRequestHandler):
    def handle(self):
        kind = self.server.kind
        with contextlib.suppress(OSError):
            if kind == "silent":
                self.server.over.wait(600)
                return
            self.request.recv(65536)
            if kind == "drip":
                for byte in b"HTTP/1.1 200 OK\r\nX-A: " + b"a" * 600:
                    if self.server.over.wait(0.5):
                        return
                    self.request.sendall(bytes([byte]))
            elif kind == "endless":
                self.request.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                                     b"Transfer-Encoding: chunked\r\n\r\n")
                while not self.server.over.is_set():
                    self.request.sendall(b"10000\r\n" + b" " * 65536 + b"\r\n")
                    time.sleep(0.001)
            else:
                self.request.sendall(NASTY[kind])


class NastyServer(socketserver.ThreadingTCPServer):
    daemon_threads, allow_reuse_address = True, True

    def __init__(self, kind):
        super().__init__(("127.0.0.1", 0), Nasty)
        self.kind, self.over = kind, threading.Event()
        threading.Thread(target=self.serve_forever, args=(0.1,), daemon=True).start()

    def end(self):
        self.over.set()
        self.shutdown()
        self.server_close()


def lateness(broker):
    """Share of listings that began at most 100 ms late."""
    counts = {}
    for line in broker.get("/metrics").splitlines():
        if line.startswith("tieline_poll_late_seconds_bucket"):
            counts[line.split('le="')[1].split('"')[0]] = float(line.rsplit(" ", 1)[1])
    return counts["0.1"] / counts["+Inf"], counts["+Inf"]


def part_nasty(options):
    """Members that hang, drip, flood, talk HTML or are not there, beside a healthy one."""
    token = pathlib.Path(tempfile.mkstemp(prefix="tieline-kills-token.")[1])
    token.write_text("x.y.z")
    servers = {kind: NastyServer(kind) for kind in NASTY}
    # Nobody accepts there: the queue of connections is full, so that a connect hangs.
    full = socket.socket()
    full.bind(("127.0.0.1", 0))
    full.listen(0)
    crowd = [socket.socket() for _ in range(4)]
    for one in crowd:
        one.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            one.connect(full.getsockname())
    gone = socket.socket()
    gone.bind(("127.0.0.1", 0)) # bound and not listening: refused
    ports = {**{kind: server.server_address[1] for kind, server in servers.items()},
             "hangs": full.getsockname()[1], "absent": gone.getsockname()[1]}
    clusters = LOCAL.format(name="healthy", cpus=4, waiting=3)
    for kind, port in ports.items():
        clusters += SLURM.format(name=kind, url=f"http://127.0.0.1:{port}", token=token, work="/tmp", waiting=2,
                                 probe="1s")
    try:
        with lab(options.program, options.script, "nasty", clusters) as it:
            broker, begin = it.broker, time.monotonic()
            broker.start()
            ids = []
            while time.monotonic() - begin < 35 * options.rounds + 5:
                ids += broker.submit_all([it.job(f"n{len(ids) + i}", 0.2) for i in range(5)])
                time.sleep(1)
            wait_until("every job is final", lambda: not broker.jobs("&state=live"), 60, 0.5)
            it.check(ids)
            it.check_still()
            share, count = lateness(broker)
            if share < 0.99 or count < 30:
                fail(f"only {share:.4f} of {count} listings began within 100 ms")
            for place in broker.get("/v1/places")["places"]:
                well = place["cluster"] == "healthy"
                if (place["state"] == "ok") != well or (not well and not place["reason"]):
                    fail(f"{place['place']}: {place['state']}: {place['reason']}")
    finally:
        for server in servers.values():
            server.end()
        for one in (full, gone, *crowd):
            one.close()
        token.unlink()
    print(f"nasty: {len(ids)} jobs, {share * 100:.2f} % of {count:.0f} listings at most 100 ms late")


class Cluster:
    """One real Slurm and its member in a lab."""

    def __init__(self, it, *options):
        self.it = it
        self.slurm = it.slurm("hpc", "--partitions", "main:1x6", *options)

    def member(self, waiting=4, probe="1s"):
        return SLURM.format(name="hpc", probe=probe, url=self.slurm.env["URL"], token=self.slurm.env["TOKEN_FILE"],
                            work=self.it.work, waiting=waiting)

    def run(self, *words):
        subprocess.run([self.slurm.script, words[0], str(self.slurm.dir), *words[1:]], check=True, timeout=120)

    def command(self, *words):
        return subprocess.run(words, check=True, text=True, stdout=subprocess.PIPE, timeout=60,
                              env={**os.environ, "SLURM_CONF": self.slurm.env["SLURM_CONF"]}).stdout

    def native(self, job):
        return self.it.broker.job(job)["attempts"][-1]["native_id"]


@contextlib.contextmanager
def slurm_lab(options, name, *words):
    with lab(options.program, options.script, name, "", places="hpc") as it:
        hpc = Cluster(it, *words)
        it.configure(hpc.member())
        yield it, hpc


def part_slurm(options):
    """A real Slurm: lost answers, dead and silent daemons, a person's scancel, ends nobody saw."""
    with slurm_lab(options, "slurm") as (it, hpc):
        it.broker.start()
        wait_until("the place is ok", lambda: it.broker.get("/v1/places")["places"][0]["state"] == "ok", 30)
        ids = []
        for case in (slurm_rest_dies, slurm_lost_answer, slurm_restarts, slurm_away):
            ids += case(it, hpc)
            wait_until("every job is final", lambda: not it.broker.jobs("&state=live"), 180, 1)
            it.check(ids)
        others = slurm_scancel(it, hpc) + slurm_unseen_end(it, hpc)
        more = {id: count for id, count in it.lines().items() if count != 1}
        if more or set(it.lines()) != set(ids + others):
            fail(f"not exactly one line: {more}")
        it.check_still()
    print(f"slurm: {len(ids) + len(others)} jobs, one line each")


def slurm_lost_answer(it, hpc):
    """The broker dies between a submit and its answer: what arrived is adopted."""
    broker = it.broker
    hpc.run("pause", "slurmrestd")
    ids = broker.submit_all([it.job(f"lost{i}", 1) for i in range(3)])
    wait_until("they are placed", lambda: all(broker.job(id)["state"] == "placed" for id in ids), 20)
    wait_until("the submits are under way", lambda: broker.metric("tieline_member_calls_open", cluster="hpc") >= 3, 20)
    broker.kill()
    hpc.run("resume", "slurmrestd") # it reads what lies in its sockets
    broker.start()
    for id in ids:
        job = broker.wait_final(id, 150)
        if len(job["attempts"]) != 1 and it.lines()[id] != 1:
            fail(f"not adopted: {job}")
    return ids


def slurm_rest_dies(it, hpc):
    """slurmrestd is killed while jobs run, wait and are sent: they wait, and go on when it is back."""
    broker = it.broker
    ids = broker.submit_all([it.job(f"rest{i}", 3) for i in range(2)])
    wait_until("some run", lambda: any(it.lines()[id] for id in ids), 30)
    killer = threading.Thread(target=hpc.run, args=("kill", "slurmrestd"))
    killer.start()
    while broker.get("/v1/places")["places"][0]["state"] == "ok": # sent before it is noticed
        ids += broker.submit_all([it.job(f"rest-a{len(ids)}", 1)])
        time.sleep(0.05)
    killer.join()
    ids += broker.submit_all([it.job(f"rest-b{i}", 1) for i in range(3)])
    end = time.monotonic() + 45 # longer than a submit is tried
    while time.monotonic() < end:
        failed = [job for job in broker.jobs("&state=final") if job["state"] == "failed"]
        if failed:
            fail(f"a job failed because its member was away: {failed[0]}")
        time.sleep(1)
    hpc.run("restart", "slurmrestd")
    for id in ids:
        broker.wait_final(id, 90)
    return ids


def slurm_away(it, hpc):
    """slurmctld hangs for 40 s: jobs are unknown, then found; none is run again."""
    broker = it.broker
    ids = broker.submit_all([it.job(f"away{i}", 50) for i in range(3)])
    wait_until("they run", lambda: all(broker.job(id)["state"] == "running" for id in ids), 40)
    hpc.run("pause", "slurmctld")
    wait_until("they are unknown", lambda: all(broker.job(id)["state"] == "unknown" for id in ids), 75, 1)
    hpc.run("resume", "slurmctld")
    wait_until("they are found", lambda: all(broker.job(id)["state"] in ("running", "succeeded") for id in ids), 60, 1)
    for id in ids:
        job = broker.wait_final(id, 90)
        if len(job["attempts"]) != 1:
            fail(f"run again: {job}")
    return ids


def slurm_restarts(it, hpc):
    """slurmctld is restarted, and the broker with it."""
    broker = it.broker
    ids = broker.submit_all([it.job(f"ctld{i}", 8) for i in range(8)])
    wait_until("some run", lambda: any(it.lines()[id] for id in ids), 30)
    time.sleep(6) # slurmctld has saved its state: what it forgets is another test
    hpc.run("restart", "slurmctld")
    broker.kill()
    broker.start()
    return ids


def slurm_scancel(it, hpc):
    """A person ends a job there: CANCELLED, and never run elsewhere."""
    broker = it.broker
    running = broker.submit_all([it.job("person", 300)])[0]
    broker.wait_state(running, "running")
    hpc.command("scancel", hpc.native(running))
    job = broker.wait_final(running)
    if job["state"] != "cancelled" or len(job["attempts"]) != 1:
        fail(f"a person's scancel: {job}")
    if "requeue" in hpc.command("scontrol", "-o", "show", "jobs").lower().replace("requeue=0", ""):
        fail("a native retry is on")
    return [running]


def slurm_unseen_end(it, hpc):
    """Jobs that end while the broker is down: with its exit code, or, forgotten there, outcome-unknown."""
    broker = it.broker
    codes = {broker.submit_all([it.job("seven", 2, 7)])[0]: 7, broker.submit_all([it.job("zero", 2)])[0]: 0}
    wait_until("they run", lambda: all(it.lines()[id] for id in codes), 30)
    broker.kill()
    wait_until("they are over", lambda: not hpc.slurm.running(), 30)
    broker.start()
    for id, code in codes.items():
        job = broker.wait_final(id)
        if job["attempts"][0]["exit_code"] != code or job["state"] != ("failed" if code else "succeeded"):
            fail(f"an end nobody saw: {job}")
    return list(codes)


def part_forgotten(options):
    """What ended and was forgotten while the broker was down: outcome-unknown, and not run again."""
    with slurm_lab(options, "forgotten", "--min-job-age", "5") as (it, hpc):
        it.broker.start()
        slurm_forgotten_end(it, hpc)
        it.check_still()
    print("forgotten: the outcome is unknown, and it was not run again")


def part_unsent(options):
    """Nothing listens at the member and no probe has told yet: the job goes back, and that is no try."""
    with slurm_lab(options, "unsent") as (it, hpc):
        broker = it.broker
        it.configure(hpc.member(probe="40s"))
        broker.start()
        wait_until("the place is ok", lambda: broker.get("/v1/places")["places"][0]["state"] == "ok", 30)
        hpc.run("kill", "slurmrestd")
        ids = broker.submit_all([it.job("unsent", 0.1, rerun="never")])
        wait_until("it is placed", lambda: broker.job(ids[0])["attempts"], 20)
        wait_until("it is given back", lambda: broker.job(ids[0])["attempts"][0].get("outcome") == "absent", 60, 1)
        hpc.run("restart", "slurmrestd")
        job = broker.wait_final(ids[0], 90)
        it.check(ids)
        it.check_still()
        first = job["attempts"][0]
        if len(job["attempts"]) != 2 or first["outcome"] != "absent" or "connect" not in first["reason"]:
            fail(f"not as it was: {job['attempts']}")
    print("unsent: what was never sent is no try")


def slurm_forgotten_end(it, hpc):
    broker = it.broker
    forgotten = broker.submit_all([it.job("forgotten", 2)])[0]
    wait_until("it runs", lambda: it.lines()[forgotten], 30)
    native = hpc.native(forgotten)
    broker.kill()

    def is_forgotten():
        done = subprocess.run(["scontrol", "show", "job", native], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, timeout=30,
                              env={**os.environ, "SLURM_CONF": hpc.slurm.env["SLURM_CONF"]})
        return done.returncode != 0
    wait_until("it is forgotten there", is_forgotten, 180, 2)
    broker.start()
    job = broker.wait_final(forgotten)
    if job["state"] != "failed" or job["attempts"][0]["outcome"] != "outcome-unknown" or len(job["attempts"]) != 1:
        fail(f"a forgotten end: {job}")
    if it.lines()[forgotten] != 1:
        fail("it ran again")


PARTS = {name[5:]: part for name, part in list(globals().items()) if name.startswith("part_")}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("script")
    parser.add_argument("--only", default=",".join(PARTS))
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(3), "big"))
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    for name in options.only.split(","):
        begin = time.monotonic()
        PARTS[name](options)
        print(f"    {name}: {time.monotonic() - begin:.0f} s", flush=True)


if __name__ == "__main__":
    main()
