#!/usr/bin/env python3
"""federation - the main job on real clusters: two Slurm clusters and a local member.

300 jobs of three classes overflow `hpc`; the burst opens, jobs go to `cloud` inside a budget, the burst
closes; the broker is killed in the middle and started again. Each job appends one line to a file.
Then: exactly one line per job, every job final with its reasons, and /metrics, /v1/jobs and Slurm agree.

usage: federation.py PROGRAM CLUSTER_SCRIPT [--jobs N]
"""

import argparse
import collections
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

CONFIG = """\
version: 1
federation: e2e-lab
state: {state}
server: {{listen: "127.0.0.1:0"}}
store: sqlite:{state}/tieline.db
policy: {state}/policy.yaml
clusters:
  hpc:
    adapter: slurm
    kind: owned
    probe: 1s
    requests: 50/s
    connect: {{via: rest, url: "{hpc_url}", user: slurm, token: {{file: {hpc_token}}}}}
    workdir: {work}
    places:
      cpu: {{partition: cpu, max_waiting: 6}}
      big: {{partition: big, max_waiting: 2}}
  cloud:
    adapter: slurm
    kind: on-demand
    probe: 1s
    requests: 50/s
    connect: {{via: rest, url: "{cloud_url}", user: slurm, token: {{file: {cloud_token}}}}}
    workdir: {work}
    places:
      main:
        partition: main
        max_waiting: 4
        nodes: {{vm: {{cpus: 8, memory: 4GiB, price: 0.80 EUR/h, at_most: 8}}}}
  edge:
    adapter: local
    kind: owned
    probe: 1s
    capacity: {{cpus: 2, memory: 2GiB}}
    max_waiting: 2
"""

POLICY = """\
version: 1
currency: EUR
default_class: batch
classes:
  ci:       {order: 1, share: 50%, waiting: 4 EUR/h, time: {limit: 5m, estimate: 5s}, needs: {cpus: 1, memory: 64MiB}}
  training: {order: 2, share: 30%, waiting: 20%, time: {limit: 5m, estimate: 10s}, needs: {cpus: 2, memory: 128MiB}}
  batch:    {order: 3, share: 20%, waiting: 1%, time: {limit: 5m, estimate: 5s}, needs: {cpus: 1, memory: 64MiB}}
budgets:
  cloud: {limit: 50 EUR, per: month}
bursts:
  overflow:
    open:  [{pending: 50}]
    close: {pending: 10, for: 2s}
    at_most: {nodes: 8, jobs: 40}
    budget: cloud
routes:
  - name: big-ones
    match: {class: training}
    tiers:
      - {places: [hpc/big, hpc/cpu]}
      - {places: cloud, burst: overflow}
  - name: own-first
    tiers:
      - {places: [hpc/cpu, edge], fill: 95%}
      - {places: cloud, burst: overflow}
expect:
  - {job: {class: batch}, given: {full: [hpc, edge]}, waits: true}
  - {job: {class: batch}, given: {full: [hpc, edge], open: overflow}, goes_to: cloud}
"""

CLASSES = {"ci": 150, "training": 50, "batch": 100}
SECONDS_MAX = 420


def fail(text):
    raise AssertionError(text)


def wait_until(what, condition, seconds, pause=0.2):
    """Polls a condition; its last value is returned. Never a sleep in place of one."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            fail(f"after {seconds} s still not: {what}")
        time.sleep(pause)


class Broker:
    """The program under test, its address and token as its state directory says."""

    def __init__(self, program, state):
        self.program, self.state = program, state
        self.log = open(state / "broker.log", "ab")
        self.process = None
        self.url = None

    def start(self):
        self.process = subprocess.Popen(
            [self.program, "serve", "--config", str(self.state / "tieline.yaml")],
            stdout=self.log, stderr=self.log, start_new_session=True)
        wait_until("the broker is ready", self.is_ready, 30)

    def is_ready(self):
        if self.process.poll() is not None:
            fail(f"the broker ended with {self.process.returncode}: see {self.state}/broker.log")
        try:
            start = (self.state / "broker.log").read_text().rsplit(" serves at ", 1)
            if len(start) < 2:
                return False
            self.url = start[1].split()[0]
            return self.get("/readyz") is not None
        except (OSError, urllib.error.URLError):
            return False

    def request(self, method, path, body=None, headers=None, content_type="application/json"):
        token = (self.state / "token").read_text().strip()
        request = urllib.request.Request(self.url + path, method=method, data=body, headers={
            "Authorization": f"Bearer {token}", "Content-Type": content_type, **(headers or {})})
        with urllib.request.urlopen(request, timeout=60) as reply:
            return reply.read().decode()

    def get(self, path):
        text = self.request("GET", path)
        return text if path.startswith(("/metrics", "/readyz")) else json.loads(text)

    def jobs(self, query=""):
        jobs, cursor = [], ""
        while True:
            page = self.get(f"/v1/jobs?limit=200{query}{cursor}")
            jobs += page["jobs"]
            if not page["next_cursor"]:
                return jobs
            cursor = f"&cursor={page['next_cursor']}"

    def metric(self, name, **labels):
        want = {f'{key}="{value}"' for key, value in labels.items()}
        for line in self.get("/metrics").splitlines():
            head, _, value = line.rpartition(" ")
            base, _, rest = head.partition("{")
            if base == name and want == set(filter(None, rest.rstrip("}").split(","))):
                return float(value)
        return fail(f"there is no metric {name} {labels}")

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(15)
            except subprocess.TimeoutExpired:
                self.kill()
                fail("the broker did not stop within 15 s of SIGTERM")
            if self.process.returncode != 0: # a sanitizer's finding, a leak among them
                fail(f"the broker ended with {self.process.returncode}")


class Slurm:
    def __init__(self, script, name, directory, *options):
        self.script, self.dir = script, directory
        subprocess.run([script, "start", name, "--dir", str(directory), "--restd", "tcp", *options],
                       check=True, timeout=120)
        lines = (directory / "env").read_text().splitlines()
        self.env = dict(line.replace('"', "").split("=", 1) for line in lines if "=" in line)

    def running(self):
        out = subprocess.run(["squeue", "-h", "-t", "RUNNING", "-o", "%j"], check=True, text=True,
                             stdout=subprocess.PIPE, timeout=60,
                             env={**os.environ, "SLURM_CONF": self.env["SLURM_CONF"]}).stdout
        return out.split()

    def all_names(self):
        out = subprocess.run(["scontrol", "-o", "show", "jobs"], check=True, text=True,
                             stdout=subprocess.PIPE, timeout=60,
                             env={**os.environ, "SLURM_CONF": self.env["SLURM_CONF"]}).stdout
        return [word.split("=", 1)[1] for line in out.splitlines() for word in line.split()
                if word.startswith("JobName=")]

    def stop(self):
        subprocess.run([self.script, "stop", str(self.dir)], check=True, timeout=60)


def make_jobs(ledger, counts):
    """Interleaved, so that every class has work at any time. One line per job, in one write."""
    jobs = []
    for name, count in counts.items():
        for i in range(count):
            seconds = 1 + i % 3 if name == "training" else 1
            jobs.append({"name": f"{name}-{i}", "class": name, "team": "ml" if i % 2 else "web",
                         "run": f'echo "$TIELINE_JOB $TIELINE_ATTEMPT $TIELINE_PLACE" >> {ledger}\n'
                                f"sleep {seconds}\n"})
    jobs.sort(key=lambda job: int(job["name"].split("-")[1]))
    return jobs


def submit(broker, jobs):
    body = "\n".join(json.dumps(job) for job in jobs).encode()
    headers = {"Idempotency-Key": '"e2e-300"'}
    first = json.loads(broker.request("POST", "/v1/jobs", body, headers, "application/x-ndjson"))
    again = json.loads(broker.request("POST", "/v1/jobs", body, headers, "application/x-ndjson"))
    ids = [job["id"] for job in first["jobs"]]
    if [job["id"] for job in again["jobs"]] != ids:
        fail("the same bulk with the same key made other jobs")
    return ids


def running_agrees(broker, clusters):
    """At one quiet moment: our metric, our list and the cluster say the same."""
    for name, places in (("hpc", ("hpc/cpu", "hpc/big")), ("cloud", ("cloud/main",))):
        before = clusters[name].running()
        metric = sum(broker.metric("tieline_place_jobs", place=place, state="running")
                     for place in places)
        listed = [job for job in broker.jobs("&state=active") if job["state"] == "running"
                  and job["place"] in places]
        if before != clusters[name].running() or not metric == len(listed) == len(before):
            return False
    return True


def check_end(broker, ids, ledger, clusters):
    jobs = {job["id"]: job for job in broker.jobs()}
    lines = [line.split() for line in ledger.read_text().splitlines()]
    count = collections.Counter(line[0] for line in lines)
    if set(jobs) != set(ids):
        fail(f"{len(set(ids) - set(jobs))} accepted jobs are not listed")
    bad = [job for job in jobs.values() if job["state"] != "succeeded"]
    if bad:
        fail(f"{len(bad)} jobs did not succeed, the first: {json.dumps(bad[0])}")
    wrong = {id: count[id] for id in ids if count[id] != 1}
    if wrong or len(lines) != len(ids):
        fail(f"{len(lines)} lines for {len(ids)} jobs; not exactly one: {wrong}")
    without = [job["id"] for job in jobs.values() if not job.get("reason")]
    if without:
        fail(f"jobs without a reason: {without[:5]}")
    for state in ("held", "queued", "active", "cancelling"):
        if broker.metric("tieline_jobs", state=state):
            fail(f"/metrics still counts {state} jobs")
    where = collections.Counter(job["place"] for job in jobs.values())
    for name, cluster in clusters.items():
        ours = sum(1 for job in jobs.values() for attempt in job["attempts"]
                   if attempt["place"].split("/")[0] == name)
        theirs = sum(1 for job in cluster.all_names() if job.split(".")[0].split("-")[0] in CLASSES)
        if ours != theirs:
            fail(f"{name}: /v1/jobs has {ours} attempts there, scontrol shows {theirs}")
    return where


def check_explain(broker, ids):
    for id in ids[:: max(1, len(ids) // 20)]:
        record = broker.get(f"/v1/jobs/{id}/explain")
        decision = record["decision"]
        if not decision or not decision["places"] or record["job"]["place"] != decision["chosen"]:
            fail(f"explain of {id} does not name its place: {json.dumps(record)[:400]}")


def burst_states(broker):
    events, cursor = [], 0
    while True:
        page = broker.get(f"/v1/events?limit=1000&cursor={cursor}")
        events += [event["data"]["state"] for event in page["events"]
                   if event["kind"] == "burst-state"]
        if not page["events"]:
            return events
        cursor = page["next_cursor"]


def run(program, script, jobs_wanted, root):
    state, work = root / "state", root / "work"
    state.mkdir()
    work.mkdir()
    os.chmod(root, 0o755)
    os.chmod(work, 0o1777)
    ledger = work / "ledger"
    ledger.touch()
    os.chmod(ledger, 0o666)
    clusters, broker = {}, None
    try:
        clusters["hpc"] = Slurm(script, "hpc", root / "hpc", "--partitions", "cpu:1x6,big:1x4")
        clusters["cloud"] = Slurm(script, "cloud", root / "cloud", "--partitions", "main:1x8")
        (state / "policy.yaml").write_text(POLICY)
        (state / "tieline.yaml").write_text(CONFIG.format(
            state=state, work=work,
            hpc_url=clusters["hpc"].env["URL"], hpc_token=clusters["hpc"].env["TOKEN_FILE"],
            cloud_url=clusters["cloud"].env["URL"], cloud_token=clusters["cloud"].env["TOKEN_FILE"]))
        subprocess.run([program, "policy", "check", str(state / "policy.yaml"), "--config",
                        str(state / "tieline.yaml")], check=True, timeout=60)
        broker = Broker(program, state)
        broker.start()
        scale = jobs_wanted / sum(CLASSES.values())
        ids = submit(broker, make_jobs(ledger, {k: round(v * scale) for k, v in CLASSES.items()}))
        print(f"accepted {len(ids)} jobs at {broker.url}")

        wait_until("the burst is open", lambda: "open" in burst_states(broker), 60)
        done = lambda: len(ledger.read_text().splitlines())
        wait_until("a third has run", lambda: done() >= len(ids) // 3, SECONDS_MAX)
        broker.kill()
        print(f"killed the broker after {done()} of {len(ids)} lines")
        broker.start()
        wait_until("metrics, list and squeue agree", lambda: running_agrees(broker, clusters), 120)
        wait_until("every job is final", lambda: not broker.jobs("&state=live"), SECONDS_MAX, 1)
        wait_until("the burst is closed again", lambda: burst_states(broker)[-1] == "closed", 60)
        where = check_end(broker, ids, ledger, clusters)
        check_explain(broker, ids)
        if not where["cloud/main"]:
            fail(f"nothing went to the cloud: {where}")
        budget = next(b for b in broker.get("/v1/bursts")["budgets"] if b["name"] == "cloud")
        if float(budget["settled"].split()[0]) <= 0 or float(budget["booked"].split()[0]) != 0:
            fail(f"the budget was not settled: {budget}")
        print(f"one line per job: {len(ids)}; placed: {dict(where)}; bursts: {burst_states(broker)}; "
              f"budget: {budget}")
    finally:
        try:
            if broker:
                broker.stop()
        finally:
            for cluster in clusters.values():
                cluster.stop()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("cluster_script")
    parser.add_argument("--jobs", type=int, default=300)
    options = parser.parse_args()
    root = pathlib.Path(tempfile.mkdtemp(prefix="tieline-e2e."))
    try:
        run(options.program, options.cluster_script, options.jobs, root)
    except BaseException:
        log = root / "state" / "broker.log"
        if log.exists():
            sys.stdout.write("---- the broker's log ends with\n" + log.read_text()[-6000:])
        raise
    finally:
        shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    main()
