"""The cache of compiled kernels: its folder, its invalidation, and processes that cannot write to it."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

from dalify.base import compiling
from dalify.base.compiling import KernelCache, njit
from tests.helpers.platforms import needs_posix
from tests.helpers.warm_python import WarmPython

PROJECT = Path(__file__).parent.parent.parent

CALLEE = """
from dalify.base.compiling import njit
FACTOR = 2

@njit(nogil=True, cache=True)
def inner(x):
    return x * 10
"""
CALLER = """
from dalify.base.compiling import njit
from toy.callee import FACTOR, inner

@njit(nogil=True, cache=True)
def outer(x):
    return middle(x) + FACTOR

@njit(nogil=True, cache=True)
def middle(x):
    return inner(x) + 1
"""


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    """A package of two modules, one of which calls a kernel of the other."""
    package = tmp_path / "source" / "toy"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "callee.py").write_text(CALLEE)
    (package / "caller.py").write_text(CALLER)
    return package


# Numba prepares a lot when it compiles for the first time.
WARM = """
import numba
from dalify.base.compiling import njit

njit()(lambda x: x)(1)
prepare = numba.core.config.reload_config
"""


@pytest.fixture(scope="module")
def warm() -> Iterator[WarmPython | None]:
    """A process that has imported and used numba; None where processes cannot fork."""
    if not hasattr(os, "fork"):
        yield None
        return
    with closing(WarmPython(WARM, {"PATH": os.environ["PATH"], "PYTHONPATH": str(PROJECT)})) as process:
        yield process


@pytest.fixture
def run(warm: WarmPython | None) -> Callable[..., str]:
    """The function `run_toy`, in forks of a process that has used numba."""
    return partial(run_toy, warm=warm)


def run_toy(
    toy: Path, program: str = "", *, warm: WarmPython | None = None, flags: tuple[str, ...] = (), **environment: str
) -> str:
    """Return the output of a process that runs `toy.caller.outer(1)`: the result, and the compiled functions."""
    program += textwrap.dedent("""
        import toy.caller, toy.callee
        result = toy.caller.outer(1)
        hits = [len(f.nopython_signatures) and f._cache_hits.total() for f in (toy.caller.outer, toy.callee.inner)]
        print(result, "loaded" if hits[0] else "compiled")
    """)
    settings = {"PATH": os.environ["PATH"], "PYTHONPATH": f"{toy.parent}{os.pathsep}{PROJECT}", **environment}
    if warm is not None:
        done = warm.run(program, settings, [str(toy.parent)])
    else:
        command = [sys.executable, *flags, "-c", program]
        done = subprocess.run(command, env=settings, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return f"{done.stdout.strip()}{' with a warning' if 'RuntimeWarning' in done.stderr else ''}"


def saved(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.nbc"))


def test_code_is_loaded_by_the_next_process(toy: Path) -> None:
    assert run_toy(toy, HOME="/nonexistent") == "13 compiled"
    assert {path.name.split("-")[0].rpartition(".")[0] for path in saved(toy / "__pycache__")} == {
        "caller.outer",
        "caller.middle",
        "callee.inner",
    }
    assert run_toy(toy, HOME="/nonexistent") == "13 loaded"
    assert not [path for path in toy.rglob("*") if path.suffix == ".part"]


def test_loading_starts_no_other_part_of_numba(toy: Path) -> None:
    """A kernel that allocates memory and returns it needs numba's runtime, which is not compiled again."""
    (toy / "caller.py").write_text("""
import numpy as np
from dalify.base.compiling import njit

@njit(nogil=True, cache=True)
def outer(x):
    return np.full(3, x)
""")
    program = """
import sys, numpy as np
from numba.core import entrypoints
from numba.core.runtime import nrt
import toy.caller
for value in (1, 1.0):
    print(toy.caller.outer(value).sum())
print(nrt.rtsys._init, entrypoints._already_initialized, "numpy.ma" in sys.modules)
"""
    command = [sys.executable, "-c", program]
    settings = {"PATH": os.environ["PATH"], "PYTHONPATH": f"{toy.parent}{os.pathsep}{PROJECT}"}
    lines = [
        subprocess.run(command, env=settings, capture_output=True, text=True, check=True).stdout.split()
        for _ in range(2)
    ]
    assert lines[0][:4] == ["3", "3.0", "True", "True"]
    assert lines[1] == ["3", "3.0", "False", "False", "False"]


def type_of(kernel: Any, array: Any) -> Any:
    """Return numba's type of an argument of a kernel, or the class of its error."""
    try:
        return kernel.typeof_pyval(array)
    except numba.errors.NumbaError as error:
        return type(error)


@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "i4", "u8", "e", "f", "d", "F", "D", ">i4", "M8[s]"])
def test_types_of_arrays_equal_numba(dtype: str) -> None:
    kernel: Any = njit()(lambda x: x)
    plain: Any = numba.njit(lambda x: x)
    array = np.zeros((3, 4), dtype)
    frozen = array[:1]
    frozen.flags.writeable = False
    arrays = [array, array.T, array[:, ::2], array[0], array[:0], array[0, 0:1].reshape(()), frozen]
    for each in [*arrays, np.frombuffer(bytes(array.nbytes + 1), np.uint8)[1:].view(dtype)]:
        assert type_of(kernel, each) == type_of(plain, each)


@pytest.mark.parametrize(
    ("module", "before", "after", "result"),
    [
        ("callee", "x * 10", "x * 20", "23"),
        ("callee", "FACTOR = 2", "FACTOR = 5", "16"),
        ("caller", "+ 1", "+ 2", "14"),
    ],
)
def test_a_change_of_any_file_is_noticed(
    toy: Path, run: Callable[..., str], module: str, before: str, after: str, result: str
) -> None:
    run(toy)
    path = toy / f"{module}.py"
    text = path.read_text()
    path.write_text(f"{text.replace(before, after)}\n")  # Python looks at times in seconds, and at sizes
    assert run(toy) == f"{result} compiled"
    count = len(saved(toy))
    path.write_text(text)
    assert run(toy).startswith("13 ")
    assert len(saved(toy)) <= count + 2  # what belongs to an older version of the file itself is gone


def test_damaged_files_are_replaced(toy: Path, run: Callable[..., str]) -> None:
    run(toy)
    paths = saved(toy)
    for contents in (b"", b"nonsense", paths[0].read_bytes()[:-1], paths[0].read_bytes()[:-1] + b"\0"):
        for path in paths:
            path.write_bytes(contents)
        assert run(toy) == "13 compiled"
        assert run(toy) == "13 loaded"


def test_processes_that_compile_at_the_same_time(toy: Path) -> None:
    """Numba's own index can name the code of another signature after this."""
    programs = ["import toy.caller; assert toy.caller.outer(1.5) == 18.0", "import toy.caller; toy.caller.outer(2)"] * 2
    with ThreadPoolExecutor(len(programs)) as pool:
        results = list(pool.map(lambda program: run_toy(toy, program), programs))
    assert {result.split()[0] for result in results} == {"13"}
    assert run_toy(toy, "import toy.caller; assert toy.caller.outer(1.5) == 18.0") == "13 loaded"


def test_folder_of_the_environment_comes_first(toy: Path, run: Callable[..., str], tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    assert run(toy, NUMBA_CACHE_DIR=str(kept)) == "13 compiled"
    assert len(saved(kept)) == 3
    assert not saved(toy)
    assert run(toy) == "13 compiled"


@needs_posix
def test_working_folder_that_was_deleted(toy: Path, run: Callable[..., str], tmp_path: Path) -> None:
    """Numba cannot compile there; what is compiled already runs."""
    program = textwrap.dedent(f"""
        import os
        os.mkdir({str(tmp_path / "gone")!r})
        os.chdir({str(tmp_path / "gone")!r})
        os.rmdir({str(tmp_path / "gone")!r})
    """)
    expected = """
        import toy.caller
        try:
            toy.caller.outer(1)
        except RuntimeError as error:
            assert "the working directory of this process was deleted" in str(error), error
        else:
            raise SystemExit("compiled")
        os.chdir("/")
    """
    assert run(toy, program + textwrap.dedent(expected)) == "13 compiled"
    assert run(toy, program) == "13 loaded"


@pytest.mark.parametrize("flags", [("-O",), ("-B",), ("-OO", "-B")], ids=" ".join)
def test_flags_of_python(toy: Path, flags: tuple[str, ...]) -> None:
    assert run_toy(toy, flags=flags) == "13 compiled"
    assert run_toy(toy, flags=flags) == "13 loaded"


# -- where nothing can be written


def _refuse(where: str, what: str = "errno.EROFS") -> str:
    """Return a program that cannot create files below some folders, for any user."""
    return textwrap.dedent(f"""
        import errno, os, pathlib, tempfile
        plain_open, plain_mkdir = os.open, os.mkdir
        def is_refused(path, flags):
            return flags & os.O_CREAT and any(str(path).startswith(folder) for folder in {where})
        def refusing_open(path, flags, *arguments, **keywords):
            if is_refused(path, flags):
                raise OSError({what}, os.strerror({what}), str(path))
            return plain_open(path, flags, *arguments, **keywords)
        def refusing_mkdir(path, *arguments, **keywords):
            if is_refused(path, os.O_CREAT) and not os.path.isdir(path):
                raise OSError({what}, os.strerror({what}), str(path))
            return plain_mkdir(path, *arguments, **keywords)
        os.open, os.mkdir = refusing_open, refusing_mkdir
    """)


@needs_posix
@pytest.mark.parametrize("what", ["errno.EROFS", "errno.EACCES", "errno.ENOSPC"])
def test_private_folder_where_nothing_else_can_be_written(
    toy: Path, run: Callable[..., str], tmp_path: Path, what: str
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir(mode=0o700)
    _trusted(temporary)
    program = _refuse(repr([str(toy), str(tmp_path / "home")]), what)
    settings = {"HOME": str(tmp_path / "home"), "TMPDIR": str(temporary)}
    assert run(toy, program, **settings) == "13 compiled with a warning"
    folder = temporary / f"dalify-{os.geteuid()}"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert len(saved(folder)) == 3
    assert not saved(toy)
    assert run(toy, program, **settings) == "13 loaded"


def test_no_folder_is_writable(toy: Path, run: Callable[..., str], tmp_path: Path) -> None:
    program = _refuse(repr([str(tmp_path)]))
    settings = {"HOME": str(tmp_path / "home"), "TMPDIR": str(tmp_path / "nowhere")}
    program += f"tempfile.tempdir = {str(tmp_path / 'nowhere')!r}\n"
    for _ in range(2):
        assert run(toy, program, **settings) == "13 compiled with a warning"
    assert not saved(tmp_path)


def test_without_a_home_folder_the_working_folder_is_not_used(
    toy: Path, run: Callable[..., str], tmp_path: Path
) -> None:
    """`~` of a user without an entry remains `~`, and a folder of that name may contain code of another user."""
    program = _refuse(repr([str(toy)])) + f"os.chdir({str(tmp_path)!r}); os.path.expanduser = lambda path: path\n"
    temporary = tmp_path / "temporary"
    temporary.mkdir(mode=0o700)
    run(toy, program, TMPDIR=str(temporary))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["source", "temporary"]


def _trusted(folder: Path) -> None:
    if any(parent.stat().st_uid not in (0, os.geteuid()) for parent in folder.resolve().parents):
        pytest.skip("the folder for temporary files belongs to another user")


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / "temporary"
    folder.mkdir(mode=0o700)
    _trusted(folder)
    monkeypatch.setattr(compiling.tempfile, "tempdir", str(folder))
    yield folder
    folder.chmod(0o700)


@needs_posix
class TestPrivateFolder:
    """It contains machine code that will be executed, so no other user may be able to write to it."""

    def own(self, temporary: Path) -> Path:
        return temporary.resolve() / f"dalify-{os.geteuid()}"

    def test_created(self, temporary: Path) -> None:
        assert compiling._private_folder(is_made=False) is None
        assert compiling._private_folder(is_made=True) == self.own(temporary)
        assert compiling._private_folder(is_made=False) == self.own(temporary)

    @pytest.mark.parametrize("mode", [0o770, 0o707, 0o755, 0o1777])
    def test_accessible_to_others(self, temporary: Path, mode: int) -> None:
        self.own(temporary).mkdir()
        self.own(temporary).chmod(mode)
        assert compiling._private_folder(is_made=True) is None

    def test_path_is_a_link(self, temporary: Path, tmp_path: Path) -> None:
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        self.own(temporary).symlink_to(tmp_path / "elsewhere")
        assert compiling._private_folder(is_made=True) is None

    def test_path_is_a_file(self, temporary: Path) -> None:
        self.own(temporary).write_text("")
        assert compiling._private_folder(is_made=True) is None

    @pytest.mark.parametrize(("mode", "is_trusted"), [(0o777, False), (0o770, False), (0o1777, True), (0o755, True)])
    def test_parent_is_writable_by_others(self, temporary: Path, mode: int, is_trusted: bool) -> None:
        temporary.chmod(mode)
        assert (compiling._private_folder(is_made=True) is not None) == is_trusted

    @pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away")
    @pytest.mark.parametrize("whose", ["own", "parent"])
    def test_of_another_user(self, temporary: Path, whose: str) -> None:
        self.own(temporary).mkdir(mode=0o700)
        os.chown(self.own(temporary) if whose == "own" else temporary, 65534, 65534)
        assert compiling._private_folder(is_made=True) is None

    def test_without_a_folder_for_temporary_files(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def nowhere() -> str:
            raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found")

        monkeypatch.setattr(compiling.tempfile, "gettempdir", nowhere)
        assert compiling._private_folder(is_made=True) is None


@pytest.mark.usefixtures("temporary")
def test_disk_that_fills_up_while_code_is_saved(monkeypatch: pytest.MonkeyPatch) -> None:
    """The code is used nevertheless; one warning names the variable to set."""

    def full(path: Path, parts: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr(compiling, "write_whole", full)
    monkeypatch.setattr(compiling, "_warned", [])

    @njit(nogil=True, cache=True)
    def total(values: Any) -> Any:
        return values.sum()

    with pytest.warns(
        RuntimeWarning, match=r"compiles the kernels again.*No space left on device.*NUMBA_CACHE_DIR"
    ) as caught:
        assert total(np.arange(4)) == 6
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert total(np.arange(4.0)) == 6.0


def test_function_without_a_source_file_is_compiled() -> None:
    namespace: dict[str, Any] = {"njit": njit, "__name__": "nowhere"}
    exec(compile("@njit(cache=True)\ndef twice(x):\n    return 2 * x\n", "/nonexistent/file.py", "exec"), namespace)
    assert namespace["twice"](4) == 8
    assert not isinstance(namespace["twice"]._cache, KernelCache)


@pytest.fixture
def folder_of_another_user() -> Iterator[Path]:
    """A folder of user 65534; that of ``tmp_path`` is in one that only this user can search."""
    with tempfile.TemporaryDirectory() as folder:
        os.chown(folder, 65534, 65534)
        yield Path(folder)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="setpriv of util-linux is not there")
def test_container_of_another_user(folder_of_another_user: Path) -> None:
    """Neither the package nor the home folder can be written, as in a container with its own user."""
    home = Path("/nonexistent")
    temporary = folder_of_another_user
    program = (
        "import numpy as np; from dalify import eager\n"
        "print(eager.flip(np.zeros((4, 4, 3), np.uint8)).shape, "
        "eager.resize(np.zeros((4, 4, 3), np.uint8), size=[2, 2]).shape)"
    )
    kernels = PROJECT / "dalify" / "kernels" / "__pycache__"
    done = subprocess.run(
        ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", sys.executable, "-c", program],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(PROJECT), "HOME": str(home), "TMPDIR": str(temporary)},
        cwd="/",
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if "Permission denied" in done.stderr and "dalify-65534" not in done.stderr and done.returncode:
        pytest.skip("the project is in a folder that other users cannot read")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "(4, 4, 3) (2, 2, 3)\n"
    assert done.stderr.count("RuntimeWarning") == bool(saved(temporary)), kernels
