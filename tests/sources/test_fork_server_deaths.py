"""The fork server of worker processes is killed: batches are lost, none is wrong, and new workers are started."""

from __future__ import annotations

from pathlib import Path

from tests.helpers.platforms import needs_linux
from tests.helpers.programs import finished

pytestmark = needs_linux

PROGRAM = """
import os, random, signal, sys, threading, time
import numpy as np
import psutil
from dalify import fn, pipeline_def
from dalify.base.errors import WorkerError

def source(info):
    time.sleep(0.001)
    return np.full(3, info.idx_in_epoch)

@pipeline_def(batch_size=4, num_threads=1, py_num_workers=3, py_start_method="forkserver")
def batches():
    return fn.external_source(source, batch=False, parallel=True, prefetch_queue_depth=3)

def servers():
    found = psutil.Process().children()
    return [process for process in found if "multiprocessing.forkserver" in " ".join(process.cmdline())]

def kill():
    chance = random.Random(1)
    for _ in range(DEATHS):
        time.sleep(chance.uniform(0, 0.2))
        for server in servers():
            workers.update(child.pid for child in server.children())
            server.kill()
            killed.append(server.pid)

if __name__ == "__main__":
    DEATHS = 8
    workers, killed, lost = set(), [], 0
    pipe = batches()
    pipe.run()
    thread = threading.Thread(target=kill)
    thread.start()
    number = good = 0
    while good < 30:
        number += 1
        try:
            assert pipe.run()[0].as_array()[0, 0] == 4 * number
            good += not thread.is_alive()
        except WorkerError:
            lost += 1
    thread.join()
    assert lost <= 3 * DEATHS, lost
    pipe.close()
    end = time.monotonic() + 60
    while any(psutil.pid_exists(pid) and psutil.Process(pid).status() != "zombie" for pid in workers):
        assert time.monotonic() < end, "workers stayed behind"
        time.sleep(0.01)
    print("fine", len(killed) > 0)
"""


def test_a_fork_server_that_is_killed(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    before = set(Path("/dev/shm").glob("*dalify*"))
    code, out, errors = finished(program)
    assert (code, out) == (0, "fine True\n"), errors
    assert set(Path("/dev/shm").glob("*dalify*")) <= before
