"""common.py - what the lint scripts share: the files of the tree, findings, self-tests.

Each script prints one finding a line, `path:line: sentence`, and ends with status 1 if there
was one. With --self-test it builds small trees, each with one violation, and fails unless
it catches every one of them: a guard that cannot fail guards nothing.
"""
import fnmatch
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def from_git(root):
    """Tracked and new files, without the ignored ones; None where git cannot tell."""
    if not os.path.exists(os.path.join(root, ".git")):
        return None
    command = ["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        done = subprocess.run(command, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return [name for name in done.stdout.decode().split("\0") if name]


def from_walk(root):
    """For a copy without git: everything but hidden folders and build trees."""
    names = []
    for folder, subfolders, files in os.walk(root):
        at_top = os.path.samefile(folder, root)
        subfolders[:] = [
            s for s in subfolders
            if s not in (".git", "__pycache__") and not (at_top and s.startswith("build"))
        ]
        names += [os.path.relpath(os.path.join(folder, f), root) for f in files]
    return names


def files(root, *patterns):
    """Sorted paths, relative to root, whose last part matches one of the patterns."""
    names = from_git(root)
    if names is None:
        names = from_walk(root)
    wanted = [
        n for n in set(names)
        if any(fnmatch.fnmatch(os.path.basename(n), p) for p in patterns)
    ]
    return sorted(n for n in wanted if os.path.isfile(os.path.join(root, n)))


def read(root, name):
    with open(os.path.join(root, name), encoding="utf-8", errors="replace") as file:
        return file.read()


def write_tree(root, tree):
    for name, text in tree.items():
        path = os.path.join(root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


def report(findings, what):
    """Prints the findings; the exit status of the script."""
    for finding in findings:
        print(finding)
    print(f"{what}: {len(findings)} finding(s)" if findings else f"{what}: ok")
    return 1 if findings else 0


def self_test(check, good, cases):
    """check(root) -> findings. good: a clean tree. cases: (name, tree laid over it, words that
    one finding must contain)."""
    failed = 0
    for name, changes, expected in [("clean tree", {}, None)] + cases:
        with tempfile.TemporaryDirectory(prefix="lint-") as root:
            write_tree(root, {**good, **changes})
            found = check(root)
        if expected is None:
            caught = not found
        else:
            caught = any(expected in line for line in found)
        failed += not caught
        print(f"{'ok  ' if caught else 'FAIL'}  {name}")
        if not caught:
            print(f"      expected {expected!r}, found {found!r}")
    return 1 if failed else 0


def wants_self_test():
    return "--self-test" in sys.argv[1:]
