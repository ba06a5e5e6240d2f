"""Worker processes return the results of the same source in this process, without copies, and report errors."""

import gc
import itertools
import multiprocessing
import os
import re
import signal
import threading
import time
from contextlib import closing

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dalify.base.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    CheckpointError,
    DTypeError,
    PipelineStateError,
    SourceError,
    WorkerError,
)
from dalify.sources.convert import to_batch
from dalify.sources.external import ExternalSource, SourceOptions
from dalify.sources.parallel import ParallelSource
from dalify.sources.worker_pool import WorkerPool
from tests.helpers.platforms import needs_linux, needs_posix
from tests.helpers.processes import is_running
from tests.helpers.programs import running

pytestmark = needs_posix

BATCH_SIZE = 5
# Much longer than any test, so that a test fails instead of hanging.
LIMIT_S = 30


@pytest.fixture
def make_pool():
    pools = []

    def make(num_workers=2, start_method="fork", callback_pickler=None):
        pools.append(WorkerPool(num_workers, start_method, callback_pickler))
        return pools[-1]

    yield make
    for pool in pools:
        pool.close()
    assert multiprocessing.active_children() == []


def parallel_source(pool, source, num_outputs=None, prefetch_queue_depth=1, **options):
    return ParallelSource(pool, source, SourceOptions(num_outputs=num_outputs, **options), prefetch_queue_depth)


def source_in_process(source, num_outputs=None, **options):
    return ExternalSource(source, SourceOptions(num_outputs=num_outputs, **options))


def uniform(info):
    if info.idx_in_epoch >= 17:
        raise StopIteration
    return np.full((2, 3), info.idx_in_epoch, np.int32)


def ragged(info):
    if info.idx_in_epoch >= 17:
        raise StopIteration
    return np.full(info.idx_in_epoch % 4, info.idx_in_epoch, np.float32)


def changing_shape(info):
    if info.iteration >= 4:
        raise StopIteration
    return np.full((info.iteration // 2 + 1, 2), info.idx_in_epoch, np.uint8)


def one_odd(info):
    if info.iteration >= 4:
        raise StopIteration
    return np.full(2 if info.idx_in_epoch == 12 else 3, info.idx_in_epoch, np.uint8)


def scalars(info):
    if info.idx_in_epoch >= 12:
        raise StopIteration
    return info.idx_in_epoch


def pairs(info):
    return uniform(info), ragged(info)


def whole(iteration):
    if iteration >= 3:
        raise StopIteration
    return np.full((BATCH_SIZE, 4), iteration)


def whole_with_info(info):
    if info.iteration >= 3:
        raise StopIteration
    return [np.full(index, info.epoch_idx) for index in range(1, BATCH_SIZE)], np.full((4, 1), info.iteration)


def generate():
    for number in range(4):
        yield np.full((BATCH_SIZE, 2), number)


def generate_samples():
    for number in range(13):
        yield np.full(number % 3, number)


CASES = {
    "uniform": {"source": uniform, "batch": False},
    "ragged": {"source": ragged, "batch": False},
    "changing shape": {"source": changing_shape, "batch": False},
    "one odd": {"source": one_odd, "batch": False},
    "scalars": {"source": scalars, "batch": False},
    "pairs": {"source": pairs, "batch": False, "num_outputs": 2},
    "whole": {"source": whole},
    "whole with info": {"source": whole_with_info, "batch_info": True, "num_outputs": 2},
    "generator": {"source": generate},
    "generator raise": {"source": generate, "cycle": "raise"},
    "generator quiet": {"source": generate, "cycle": "quiet"},
    "generator samples": {"source": generate_samples, "batch": False, "cycle": "raise"},
    "list": {"source": [np.zeros((2, 3)), np.ones((1, 3))], "cycle": "raise"},
}


def plain(outputs):
    """Return batches as nested lists with dtypes, so that they can be compared by value."""
    return [
        [(sample.dtype.str, np.asarray(sample).tolist()) for sample in to_batch(output).samples] for output in outputs
    ]


def epochs(source, count, most=8):
    found = []
    for _ in range(count):
        batches = []
        for _ in range(most):
            try:
                batches.append(plain(source.next_batch()))
            except StopIteration:
                with pytest.raises(StopIteration):
                    source.next_batch()
                break
        found.append(batches)
        source.reset()
    return found


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
@pytest.mark.parametrize(("num_workers", "depth"), [(1, 1), (2, 3), (3, 1)])
def test_equal_to_the_source_in_process(make_pool, case, num_workers, depth):
    parallel = parallel_source(make_pool(num_workers), **case, batch_size=BATCH_SIZE, prefetch_queue_depth=depth)
    assert epochs(parallel, 3) == epochs(source_in_process(**case, batch_size=BATCH_SIZE), 3)


@settings(max_examples=12, deadline=None)
@given(
    batch_size=st.integers(1, 9),
    num_workers=st.integers(1, 3),
    depth=st.integers(1, 4),
    name=st.sampled_from(["uniform", "ragged", "one odd", "pairs", "generator samples"]),
)
def test_equal_to_the_source_in_process_for_any_numbers(batch_size, num_workers, depth, name):
    case = CASES[name]
    pool = WorkerPool(num_workers)
    try:
        parallel = parallel_source(pool, **case, batch_size=batch_size, prefetch_queue_depth=depth)
        assert epochs(parallel, 2, 20) == epochs(source_in_process(**case, batch_size=batch_size), 2, 20)
    finally:
        pool.close()


def test_several_sources_share_the_workers(make_pool):
    pool = make_pool()
    sources = [parallel_source(pool, **case, batch_size=BATCH_SIZE, prefetch_queue_depth=2) for case in CASES.values()]
    for source in sources:
        source.prefetch()
    for source, case in zip(sources, CASES.values(), strict=True):
        assert epochs(source, 2) == epochs(source_in_process(**case, batch_size=BATCH_SIZE), 2)


@pytest.mark.parametrize("start_method", ["spawn", "forkserver"])
def test_start_methods(make_pool, start_method):
    offset = 3
    cases = {
        "global": (pairs, 2),
        "lambda": (lambda info: np.full(2, info.idx_in_epoch + offset), None),
    }
    pool = make_pool(2, start_method)
    sources = [
        parallel_source(pool, source, num_outputs, batch=False, batch_size=4) for source, num_outputs in cases.values()
    ]
    for parallel, (source, num_outputs) in zip(sources, cases.values(), strict=True):
        ours = source_in_process(source, num_outputs, batch=False, batch_size=4)
        assert plain(parallel.next_batch()) == plain(ours.next_batch())


class Pickler:
    """A custom pickler that can be recognized."""

    def __init__(self):
        self.dumped = []

    def dumps(self, value, note=None):
        self.dumped.append(note)
        return b"anything"

    def loads(self, content, iteration=0):
        assert content == b"anything"
        return lambda info: np.full(iteration, info)


def test_a_custom_pickler(make_pool):
    pickler = Pickler()
    pool = make_pool(1, "spawn", (pickler, {"note": "hello"}, {"iteration": 2}))
    source = parallel_source(pool, lambda info: None, batch_size=4)
    assert plain(source.next_batch()) == plain([np.zeros(2, np.int64)])
    assert pickler.dumped == ["hello"]


def test_a_source_that_cannot_be_sent(make_pool):
    lock = threading.Lock()
    source = parallel_source(make_pool(1, "spawn"), lambda info: lock, batch_size=4)
    with pytest.raises(
        ArgumentTypeError, match=r"(?s)cannot be sent to a worker.*lock.*test_parallel.py:\d+.*cloudpickle"
    ):
        source.next_batch()


def test_uniform_batches_are_dense_views_of_shared_memory(make_pool):
    per_sample = parallel_source(make_pool(), uniform, batch=False, batch_size=BATCH_SIZE)
    per_sample.next_batch()  # where samples go is known from the second batch on
    (dense,) = per_sample.next_batch()
    assert isinstance(dense, np.ndarray)
    assert not dense.flags.owndata
    slot = next(slot for slot in per_sample._slots if np.shares_memory(dense, slot.memory))
    assert slot.used_bytes < 1 << 20
    per_batch = parallel_source(make_pool(), whole, batch_size=BATCH_SIZE)
    (dense,) = per_batch.next_batch()
    assert any(np.shares_memory(dense, slot.memory) for slot in per_batch._slots)
    samples = parallel_source(make_pool(), ragged, batch=False, batch_size=BATCH_SIZE)
    (listed,) = samples.next_batch()
    assert any(np.shares_memory(listed[1], slot.memory) for slot in samples._slots)


def test_batches_that_are_kept_are_never_overwritten(make_pool):
    source = parallel_source(
        make_pool(), lambda i: np.full((BATCH_SIZE, 100), i), batch_size=BATCH_SIZE, prefetch_queue_depth=2
    )
    kept = [source.next_batch()[0] for _ in range(30)]
    kept_views = [batch[1:2, 3:] for batch in kept]
    for iteration, (batch, view) in enumerate(zip(kept, kept_views, strict=True)):
        assert (batch == iteration).all()
        assert (view == iteration).all()
    del kept, batch, view
    for _ in range(30):
        source.next_batch()
    assert [view[0, 0] for view in kept_views] == list(range(30))


def test_slots_are_reused(make_pool):
    source = parallel_source(make_pool(), lambda i: np.full((BATCH_SIZE, 1000), i), batch_size=BATCH_SIZE)
    for iteration in range(50):
        (batch,) = source.next_batch()
        assert (batch == iteration).all()
    del batch
    gc.collect()
    pages = sum(used > 0 for used in source.shared_bytes)
    assert pages <= 5


def test_results_of_growing_sizes(make_pool):
    source = parallel_source(
        make_pool(), lambda i: np.full((BATCH_SIZE, 1 << (2 * i)), i, np.uint8), batch_size=BATCH_SIZE
    )
    for iteration in range(11):
        (batch,) = source.next_batch()
        assert batch.shape == (BATCH_SIZE, 1 << (2 * iteration))
        assert (batch == iteration).all()


def test_a_reset_in_the_middle_drops_batches_of_the_old_epoch(make_pool):
    def source(info):
        return np.array([info.epoch_idx, info.idx_in_epoch])

    parallel = parallel_source(make_pool(), source, batch=False, batch_size=3, prefetch_queue_depth=4)
    for epoch in range(20):
        for iteration in range(epoch % 3):
            (batch,) = parallel.next_batch()
            np.testing.assert_array_equal(batch, [[epoch, 3 * iteration + i] for i in range(3)])
        parallel.reset()


@pytest.mark.parametrize("name", ["uniform", "whole", "generator", "generator raise", "generator quiet", "list"])
@pytest.mark.parametrize("batches", [0, 1, 2])
def test_a_restart_in_the_middle_equals_that_of_the_source_in_process(make_pool, name, batches):
    parallel = parallel_source(make_pool(), **CASES[name], batch_size=BATCH_SIZE, prefetch_queue_depth=3)
    in_process = source_in_process(**CASES[name], batch_size=BATCH_SIZE)
    for _ in range(3):
        for source in (parallel, in_process):
            source.restart()
        try:
            for _ in range(batches):
                assert plain(in_process.next_batch()) == plain(parallel.next_batch())
        except StopIteration:
            with pytest.raises(StopIteration):
                parallel.next_batch()
        assert (parallel.epoch, parallel.iteration) == (in_process.epoch, in_process.iteration)


class Unusual(Exception):  # noqa: N818 -- a name of the user's
    def __init__(self, one, two):
        super().__init__("unusual")


def failing(info):
    if info.idx_in_epoch == 7:
        raise KeyError("seven")
    if info.idx_in_epoch == 11:
        raise Unusual(1, 2)
    return np.array([info.idx_in_epoch])


def test_errors_of_the_source_come_with_type_traceback_and_place_and_fail_one_batch(make_pool):
    source = parallel_source(make_pool(), failing, batch=False, batch_size=5, prefetch_queue_depth=2)
    assert source.next_batch()[0].ravel().tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(KeyError, match="seven") as caught:
        source.next_batch()
    notes = "\n".join(caught.value.__notes__)
    assert re.search(r"failing\(\) at test_parallel.py:\d+, for sample 2 of batch 1 of epoch 0", notes)
    assert re.search(r'In the worker process:\nTraceback.*test_parallel.py", line \d+, in failing', notes, re.DOTALL)
    with pytest.raises(WorkerError, match=r"failing\(\) failed in a worker process: .*Unusual: unusual"):
        source.next_batch()
    assert source.next_batch()[0].ravel().tolist() == [15, 16, 17, 18, 19]


def test_unusable_data_are_named_with_sample_and_line(make_pool):
    def text(info):
        return ["text"] if info.idx_in_batch == 3 else np.zeros(2)

    with pytest.raises(DTypeError, match=r"(?s)strings cannot be used.*sample 3 of the batch.*in text\(\)") as caught:
        parallel_source(make_pool(), text, batch=False, batch_size=5).next_batch()
    assert not hasattr(caught.value, "__notes__")  # a traceback would contain no code of the user
    with pytest.raises(SourceError, match=r"(?s)returned None.*<lambda>\(\)"):
        parallel_source(make_pool(), lambda info: None, batch_size=5).next_batch()
    with pytest.raises(SourceError, match="returned 3 outputs"):
        parallel_source(make_pool(), lambda info: (1, 2, 3), 2, batch_size=5).next_batch()


def test_wrong_arguments(make_pool):
    pool = make_pool()
    with pytest.raises(ArgumentTypeError, match="takes no argument"):
        parallel_source(pool, lambda: 0, batch_size=2)
    with pytest.raises(ArgumentTypeError, match="neither callable nor iterable"):
        parallel_source(pool, 5, batch_size=2)
    with pytest.raises(ArgumentValueError, match="prefetch_queue_depth must be at least 1"):
        parallel_source(pool, uniform, batch_size=2, prefetch_queue_depth=0)
    with pytest.raises(ArgumentValueError, match="num_outputs"):
        parallel_source(pool, uniform, 0, batch_size=2)
    with pytest.raises(ArgumentValueError, match="py_num_workers must be at least 1"):
        WorkerPool(0)
    with pytest.raises(ArgumentValueError, match=r"py_start_method must be one of .*fork.*; got 'threads'"):
        WorkerPool(1, "threads")
    with pytest.raises(ArgumentTypeError, match="must have dumps and loads"):
        WorkerPool(1, "spawn", 5)


def sleeping(info):
    time.sleep(3600)


def test_close_ends_busy_workers_and_can_be_repeated(make_pool):
    pool = make_pool()
    source = parallel_source(pool, sleeping, batch_size=4)
    source.prefetch()
    begin = time.monotonic()
    pool.close()
    pool.close()
    assert time.monotonic() - begin < LIMIT_S
    with pytest.raises(PipelineStateError, match="are closed"):
        source.next_batch()


def test_batches_outlive_pool_and_source(make_pool):
    pool = make_pool()
    source = parallel_source(pool, whole, batch_size=BATCH_SIZE)
    source.next_batch()
    (batch,) = source.next_batch()
    pool.close()
    source.close()
    del source
    gc.collect()
    assert (batch == 1).all()


@needs_linux
def test_nothing_is_left_open(make_pool):
    descriptors = "/proc/self/fd"
    gc.collect()
    before = len(os.listdir(descriptors))  # noqa: PTH208
    for _ in range(3):
        pool = WorkerPool(2)
        source = parallel_source(pool, uniform, batch=False, batch_size=4)
        source.next_batch()
        pool.close()
        source.close()
        del source, pool
    gc.collect()
    assert len(os.listdir(descriptors)) <= before  # noqa: PTH208


def test_an_unreferenced_pool_ends_its_workers():
    pool = WorkerPool(2)
    source = parallel_source(pool, uniform, batch=False, batch_size=4)
    source.next_batch()
    processes = pool.process_ids
    del pool, source
    gc.collect()
    for process in processes:
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)


def test_limits_that_prevent_the_start_of_workers_are_named(make_pool, monkeypatch):
    def no_pipe(*_, **__):
        raise OSError(24, "Too many open files")

    source = parallel_source(make_pool(), uniform, batch=False, batch_size=4)
    monkeypatch.setattr(multiprocessing, "Pipe", no_pipe)
    with pytest.raises(WorkerError, match=r"(?s)cannot be started: .*Too many open files.*ulimit -n"):
        source.next_batch()


def test_sources_cannot_join_a_running_pool(make_pool):
    pool = make_pool()
    parallel_source(pool, uniform, batch=False, batch_size=4).next_batch()
    with pytest.raises(PipelineStateError, match="are already running"):
        parallel_source(pool, uniform, batch=False, batch_size=4)


@pytest.mark.parametrize("name", ["uniform", "whole with info", "generator", "generator raise", "generator samples"])
def test_restoring_at_every_step_continues_equally(name):
    case = CASES[name]

    def step(source):
        try:
            return plain(source.next_batch())
        except StopIteration:
            source.reset()
            return "end"

    states, expected = [], []
    for start in range(8):
        pool = WorkerPool(1)
        source = parallel_source(pool, **case, batch_size=BATCH_SIZE, prefetch_queue_depth=2)
        try:
            if start:
                source.restore(states[start])
                assert source.state() == states[start]
                assert [step(source) for _ in expected[start:]] == expected[start:]
            else:
                for _ in range(8):
                    states.append(source.state())
                    expected.append(step(source))
        finally:
            pool.close()


def test_states_that_do_not_fit(make_pool):
    source = parallel_source(make_pool(), generate, batch_size=BATCH_SIZE)
    state = source.state()
    source.next_batch()
    with pytest.raises(CheckpointError, match="already iterates"):
        source.restore(state)
    with pytest.raises(CheckpointError, match="not the state"):
        source.restore({})
    for wrong in (-1, 1.5, "1", None):
        with pytest.raises(CheckpointError, match="invalid position"):
            source.restore({**state, "iteration": wrong})
    assert source.state() == {**state, "iteration": 1, "items": 1}


def run_script(text, *, interrupt=False):
    """Run a program in a process group, interrupt it like Ctrl-C when it is ready, and return its output."""
    with running(text, options=["-W", "error"]) as process:
        out = ""
        if interrupt:
            out = process.stdout.readline()
            os.killpg(process.pid, signal.SIGINT)
        rest, errors = process.communicate(timeout=LIMIT_S)
        return process.returncode, out + rest, errors


SCRIPT = """
    import os, sys, time, numpy as np
    from dalify.sources.worker_pool import WorkerPool
    from dalify.sources.external import SourceOptions
    from dalify.sources.parallel import ParallelSource

    def source(info):
        return np.full(3, info.idx_in_epoch)

    def sleeping(info):
        time.sleep(3600)

    pool = WorkerPool(2)
"""


def assert_all_ended(out):
    (line,) = re.findall(r"workers ([\d ]+)", out)
    deadline = time.monotonic() + LIMIT_S
    for process in map(int, line.split()):
        while is_running(process):
            assert time.monotonic() < deadline, f"worker {process} stayed behind"
            time.sleep(0.01)


@needs_linux
def test_a_program_that_closes_nothing_ends_silently():
    code, out, errors = run_script(
        SCRIPT
        + """
    parallel = ParallelSource(pool, source, SourceOptions(batch=False, batch_size=4))
    kept = parallel.next_batch()
    print("workers", *pool.process_ids)
    """
    )
    assert (code, errors) == (0, "")
    assert_all_ended(out)


@needs_linux
def test_ctrl_c_ends_program_and_workers():
    code, out, errors = run_script(
        SCRIPT
        + """
    parallel = ParallelSource(pool, sleeping, SourceOptions(batch=False, batch_size=4))
    parallel.prefetch()
    print("workers", *pool.process_ids, flush=True)
    parallel.next_batch()
    """,
        interrupt=True,
    )
    assert code == -signal.SIGINT
    assert errors.count("Traceback") == 1  # only that of the program, because workers print nothing
    assert errors.rstrip().endswith("KeyboardInterrupt")
    assert_all_ended(out)


@needs_linux
def test_workers_end_when_their_parent_is_killed():
    code, out, _ = run_script(
        SCRIPT
        + """
    parallel = ParallelSource(pool, source, SourceOptions(batch=False, batch_size=4))
    parallel.next_batch()
    print("workers", *pool.process_ids, flush=True)
    os.kill(os.getpid(), 9)
    """
    )
    assert code == -signal.SIGKILL
    assert_all_ended(out)


@needs_linux
def test_a_fork_of_the_program_does_not_change_the_workers():
    code, out, errors = run_script(
        SCRIPT
        + """
    parallel = ParallelSource(pool, source, SourceOptions(batch=False, batch_size=4))
    parallel.next_batch()
    child = os.fork()
    if child == 0:
        try:
            parallel.next_batch()
        except Exception as error:
            print(type(error).__name__, error, flush=True)
        pool.close()
        sys.exit(0)  # with all that runs at exit
    assert os.waitpid(child, 0)[1] == 0
    for _ in range(10):
        (batch,) = parallel.next_batch()
    print("batch", batch[0, 0])
    print("workers", *pool.process_ids)
    """
    )
    assert (code, errors) == (0, "")
    assert "WorkerError the worker processes belong to the process that this one was forked from" in out
    assert "batch 40" in out
    assert_all_ended(out)


@needs_linux
def test_functions_of_a_session_without_a_file_are_pickled_by_value():
    # As in a notebook: the worker has no main module to import.
    code, out, errors = run_script(
        SCRIPT.replace("WorkerPool(2)", "WorkerPool(2, 'spawn')")
        + """
    parallel = ParallelSource(pool, source, SourceOptions(batch=False, batch_size=4))
    print(parallel.next_batch()[0].tolist())
    """
    )
    assert (code, errors) == (0, "")
    assert "[[0, 0, 0], [1, 1, 1], [2, 2, 2], [3, 3, 3]]" in out


def test_threads_may_ask_for_different_sources(make_pool):
    pool = make_pool()
    sources = [parallel_source(pool, uniform, batch=False, batch_size=3) for _ in range(3)]
    found = {}

    def run(index):
        found[index] = epochs(sources[index], 4)

    threads = [threading.Thread(target=run, args=(index,)) for index in range(3)]
    sources[0].prefetch()  # forks before there are threads
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT_S)
    expected = epochs(source_in_process(uniform, batch=False, batch_size=3), 4)
    assert [found[index] for index in range(3)] == [expected] * 3


def test_instances_of_local_classes_are_sent(make_pool):
    class Local:
        def __call__(self, info):
            return np.full(2, info)

    source = parallel_source(make_pool(1, "spawn"), Local(), batch_size=4)
    assert plain(source.next_batch()) == plain([np.zeros(2, np.int64)])


def test_many_tasks_do_not_block(make_pool):
    source = parallel_source(make_pool(3), lambda i: np.array([i]), batch_size=4, prefetch_queue_depth=700)
    with closing(source):  # it has a file for each batch in advance
        for iteration in itertools.islice(itertools.count(), 50):
            assert source.next_batch()[0][0] == iteration
