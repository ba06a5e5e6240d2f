"""Ends the programs that tests have started when the test run is killed, and so cannot end them itself.

A process watches the test run. It finds programs by a variable of their environment, which they and their children
inherit, however a test has started them. Children of forks have the environment of the process that was forked, so
they are found only if the test run itself has the variable.
"""

from __future__ import annotations

import os
import subprocess
import sys
import uuid

MARK = "DALIFY_TEST_RUN"
# Programs that follow the end of their parent may clean up first.
GRACE_S = 3.0

# Arguments: process to watch, name and value of the variable, and the seconds of grace.
_WATCHER = """
import os, sys, time
import psutil

watched, mark, run, grace_s = psutil.Process(int(sys.argv[1])), sys.argv[2], sys.argv[3], float(sys.argv[4])
if os.fork():  # so that the watcher is no child of the test run, whose tests list its children
    os._exit(0)
os.setsid()
null = os.open(os.devnull, os.O_RDWR)
for file in range(3):
    os.dup2(null, file)

def is_running(process):
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False

def programs():
    for process in psutil.process_iter():
        try:
            if process.environ().get(mark) == run and process.status() != psutil.STATUS_ZOMBIE:
                yield process
        except (psutil.Error, OSError):
            pass

while is_running(watched):
    time.sleep(0.5)
deadline = time.monotonic() + grace_s
while time.monotonic() < deadline and any(programs()):
    time.sleep(0.1)
for _ in range(100):  # programs may be starting others
    found = list(programs())
    if not found:
        break
    for process in found:
        try:
            process.kill()
        except psutil.NoSuchProcess:
            pass
    time.sleep(0.05)
"""


def end_programs_with_this_process() -> None:
    """Start the watcher, and mark all programs that are started from now on."""
    if not hasattr(os, "fork"):
        return
    run = uuid.uuid4().hex
    outside = {name: value for name, value in os.environ.items() if name != MARK}
    arguments = [str(os.getpid()), MARK, run, str(GRACE_S)]
    subprocess.run([sys.executable, "-I", "-c", _WATCHER, *arguments], env=outside, check=True)
    os.environ[MARK] = run
