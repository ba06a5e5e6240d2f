"""numba's ``njit`` with another cache of compiled code.

numba's cache needs a writable package or home folder; otherwise importing a module fails. It writes the index of a
function before the code, so concurrent or killed processes can leave an index that refers to other code. Here each
entry is one file with a checksum, written atomically. Its name is a digest of everything that the code depends on,
including kernels in other files.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import stat
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache, cached_property, partial
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba.core import config as numba_config
from numba.core import entrypoints, event, serialize, types
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.dispatcher import Dispatcher
from numba.core.runtime import nrt
from numba.extending import intrinsic as _intrinsic
from numba.np import numpy_support

from dalify.base.compile_progress import CompileProgress
from dalify.base.errors import OperatorError
from dalify.base.garbage import uncollected
from dalify.base.whole_files import write_whole

# numba is not typed.
_config: Any = numba_config  # its attributes are set from the environment
_numba: Any = numba
_entrypoints: Any = entrypoints
_event: Any = event
_numpy_support: Any = numpy_support
_types: Any = types
_serialize: Any = serialize
_runtime: Any = nrt
_result: Any = CompileResult
# Calls in compiled code omit the typing context, which type checkers would report as missing.

F = TypeVar("F", bound=Callable[..., Any])

_DIGEST_BYTES = 16
_HINT = "Set the environment variable NUMBA_CACHE_DIR to a persistent folder that this user can write."
_warned: list[str] = []
progress = CompileProgress()
_event.register("numba:compile", progress)


def intrinsic(function: Callable[..., Any]) -> Any:
    """Return ``numba.extending.intrinsic(function)``, untyped, because callers omit the typing context."""
    return _intrinsic(function)


def njit(*, cache: bool = False, **options: Any) -> Callable[[F], F]:
    """Compile a function with numba, as ``numba.njit`` does.

    Args:
        cache: cache the compiled code in files for other processes. The folders are, in this order: that of the
            environment variable NUMBA_CACHE_DIR, ``__pycache__`` next to the source file, the user's cache folder, and
            a private folder in the folder for temporary files. Code is loaded from any of them and saved to the first
            writable one. If none is writable, each process compiles again.
        options: options of ``numba.njit``.
    """

    def decorate(function: F) -> F:
        # C code does not call kernels, so no C wrapper is compiled.
        dispatcher = _numba.njit(**{"no_cfunc_wrapper": True, **options})(function)
        if isinstance(dispatcher, Dispatcher):
            untyped = cast("Any", dispatcher)
            untyped._compiler.compile = partial(_compiled, untyped._compiler.compile)
            # Before it loads cached code, numba would search the metadata of all installed packages for extensions,
            # which no kernel needs, and import numpy.ma to test whether an array is masked.
            untyped._compilation_chain_init_hook = _nothing
            untyped.typeof_pyval = partial(_type_of, untyped.typeof_pyval)
        if cache and isinstance(dispatcher, Dispatcher):  # with NUMBA_DISABLE_JIT, it is the Python function
            with suppress(OSError):  # without a source file, saved code cannot be validated
                cast("Any", dispatcher)._cache = KernelCache(cast("FunctionType", function), options)
        return cast("F", dispatcher)

    return decorate


def _nothing() -> None:
    """Do nothing."""


def _compiled(compile_function: Callable[..., Any], *arguments: Any) -> Any:
    """Compile a function with numba's extensions, without the garbage collector."""
    uncollected(_entrypoints.init_all)
    return uncollected(compile_function, *arguments)


def _type_of(general: Callable[[Any], Any], value: Any) -> Any:
    """Return numba's type of an argument; for arrays without the import of numpy.ma."""
    if type(value) is not np.ndarray or value.dtype.char not in "?bBhHiIlLqQefdFD" or not value.dtype.isnative:
        return general(value)
    array: np.ndarray[Any, Any] = value
    layout = _numpy_support.map_layout(array)
    dtype = _numpy_support.from_dtype(array.dtype)
    return _types.Array(dtype, array.ndim, layout, readonly=not array.flags.writeable)


def is_saved(kernel: Any, arguments: Sequence[Any]) -> bool:
    """Return whether the code of a kernel with ``njit(cache=True)`` is cached for arguments of these types."""
    if not isinstance(kernel, Dispatcher):  # with NUMBA_DISABLE_JIT there is nothing to compile
        return True
    kernel_cache = cast("Any", kernel)._cache
    types = tuple(_numba.typeof(argument) for argument in arguments)
    return isinstance(kernel_cache, KernelCache) and kernel_cache.has(types, cast("Any", kernel).targetctx.codegen())


class KernelCache(NullCache):
    """Cache of the compiled code of one function in files; numba's dispatcher uses it.

    Args:
        function: the Python function, at the top level of a module.
        options: options of ``numba.njit`` for the function.

    Raises:
        OSError: the source file does not exist.
    """

    def __init__(self, function: FunctionType, options: dict[str, Any]) -> None:
        self._function = function
        # Sorted, because the order of a set differs between processes.
        self._options: list[tuple[str, Any]] = [
            (key, sorted(cast("set[str]", value)) if isinstance(value, set) else value)
            for key, value in options.items()
        ]
        self._source = Path(function.__code__.co_filename)
        name = f"{self._source.stem}.{function.__qualname__}".replace("<", "").replace(">", "")
        self._name = f"{name}.{sys.implementation.cache_tag}"
        # Computed now, because the code that is compiled later is the imported code even if the file changes.
        self._name_of_version = f"{self._name}-{_digest_of_file(self._source).hex()[:12]}-"

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the code for a signature; None if there is no file.

        Unlike numba's method, it does not import numba's extensions, including SciPy, which takes 0.3 s; `_compiled`
        imports them.

        Raises:
            OperatorError: there is no file, and compiling fails because the working directory was deleted.
        """
        _register_runtime()
        name = self._file_name(sig, target_context.codegen())
        for folder in _folders(self._source.parent):
            # If a file is damaged, the function is compiled again, and the file is replaced.
            with suppress(Exception):
                contents = (folder / name).read_bytes()
                if _digest(contents[_DIGEST_BYTES:]) == contents[:_DIGEST_BYTES]:
                    return _result._rebuild(target_context, *pickle.loads(contents[_DIGEST_BYTES:]))
        _check_working_folder()
        return None

    def has(self, sig: Any, codegen: Any) -> bool:
        """Return whether a file has the code for a signature."""
        name = self._file_name(sig, codegen)
        return any((folder / name).is_file() for folder in _folders(self._source.parent))

    def save_overload(self, sig: Any, cres: Any) -> None:
        """Save the code for a signature in the first writable folder."""
        if cres.library.has_dynamic_globals:  # addresses of this process
            return
        name = self._file_name(sig, cres.codegen)
        body: bytes = _serialize.dumps(cres._reduce())
        reason = ""
        for folder in _folders(self._source.parent, is_made=True):
            try:
                folder.mkdir(parents=True, exist_ok=True)
                write_whole(folder / name, [_digest(body), body])
                self._drop_older(folder)
            except OSError as error:  # read only, or the disk is full
                reason = str(error)
                continue
            if folder.parent == _private_folder(is_made=False):
                _warn(f"compiled kernels are cached in {str(folder.parent)!r}: no other folder is writable ({reason}).")
            return
        _warn(f"each process compiles the kernels again, because no cache folder is writable ({reason}).")

    def _drop_older(self, folder: Path) -> None:
        for path in folder.glob(f"{self._name}-*.nbc"):
            if not path.name.startswith(self._name_of_version):
                path.unlink(missing_ok=True)

    def _file_name(self, sig: Any, codegen: Any) -> str:
        settings = sig, codegen.magic_tuple(), numba.__version__, _config.BOUNDSCHECK, _config.OPT, self._options
        text = f"{self._function.__code__.co_firstlineno} {settings}"
        return f"{self._name_of_version}{_digest(text.encode() + self._dependencies).hex()}.nbc"

    @cached_property
    def _dependencies(self) -> bytes:
        """Digest of the code and source files of the kernel and all functions that it calls, with their constants."""
        return _digest(b"\0".join(sorted(set(_dependencies(self._function)))))


@cache
def _register_runtime() -> None:
    """Register the C functions of numba's runtime for loaded code.

    numba would also compile functions of the runtime, which takes 20 ms; cached code contains them.
    """
    for name, address in _runtime._nrt.c_helpers.items():
        _runtime.ll.add_symbol(name if name.startswith("_") else f"NRT_{name}", address)


def _dependencies(function: FunctionType) -> Iterator[bytes]:
    package = function.__module__.partition(".")[0]
    waiting, seen = [function], {function}
    while waiting:
        found = waiting.pop()
        with suppress(OSError):
            yield _digest_of_file(Path(found.__code__.co_filename))
        # The bytecode, too: Python may have loaded that of an older file with the same size and time.
        constants = [value for value in found.__code__.co_consts if not isinstance(value, CodeType)]
        yield found.__code__.co_code + repr(constants).encode()
        for name in found.__code__.co_names:
            value = found.__globals__.get(name)
            value = getattr(value, "py_func", None) or getattr(value, "__wrapped__", value)  # compiled, or an intrinsic
            if isinstance(value, FunctionType) and value.__module__.partition(".")[0] == package and value not in seen:
                seen.add(value)
                waiting.append(value)
            elif isinstance(value, (bool, int, float, str)):
                yield f"{name}={value!r}".encode()


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=_DIGEST_BYTES).digest()


@cache
def _digest_of_file(source: Path) -> bytes:
    return _digest(source.read_bytes())


def _folders(source_folder: Path, *, is_made: bool = False) -> Iterator[Path]:
    """Yield the folders for compiled code of the modules in a folder, in order of preference.

    Args:
        source_folder: folder of the modules.
        is_made: create the private folder, which is the last one, if it does not exist.
    """
    below = f"{source_folder.name}_{_digest(os.fsencode(source_folder)).hex()}"
    if _config.CACHE_DIR:
        yield Path(_config.CACHE_DIR, below)
    yield source_folder / "__pycache__"
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111 -- it may have no home
    if os.path.isabs(home):  # noqa: PTH117 -- without a home it is "~/.cache", below any working folder
        yield Path(home, "dalify", below)
    private = _private_folder(is_made=is_made)
    if private is not None:
        yield private / below


def _private_folder(*, is_made: bool) -> Path | None:
    """Return a temporary folder that other users cannot write; None if there is none.

    Args:
        is_made: create it if it does not exist.
    """
    try:
        folder = Path(tempfile.gettempdir()).resolve() / f"dalify-{_user_number()}"
        if is_made:
            with suppress(FileExistsError):
                folder.mkdir(mode=0o700)
        return folder if _is_private(folder) else None
    except OSError:
        return None


def _user_number() -> int:
    return os.geteuid() if hasattr(os, "geteuid") else 0  # Windows has a temporary folder per user


def _is_private(folder: Path) -> bool:
    """Return whether only this user can change a folder, because the machine code in it will be executed."""
    if not hasattr(os, "geteuid"):
        return folder.is_dir()
    own = folder.lstat()
    if not stat.S_ISDIR(own.st_mode) or own.st_uid != os.geteuid() or own.st_mode & 0o077:
        return False
    for parent in folder.parents:  # users who can rename a parent can replace the folder
        status = parent.lstat()
        is_shared = bool(status.st_mode & 0o022) and not status.st_mode & stat.S_ISVTX
        if is_shared or status.st_uid not in (0, os.geteuid()):
            return False
    return True


def _check_working_folder() -> None:
    try:
        Path.cwd()
    except OSError as error:  # numba computes paths of source files relative to it
        raise OperatorError(
            "kernels cannot be compiled: the working directory of this process was deleted.",
            hint="Change to an existing folder: os.chdir(...). Or compile ahead of time: python -m dalify.warmup.",
        ) from error


def _warn(text: str) -> None:
    """Warn once in a process."""
    if not _warned:
        _warned.append(text)
        warnings.warn(f"{text} {_HINT}", RuntimeWarning, stacklevel=2)
