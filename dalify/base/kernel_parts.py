"""Compiles functions that only other kernels call: their code is linked into those kernels, and not used alone.

numba optimizes each function with all that it calls, and generates machine code for it, before it does both again for
its caller. Without that, kernels are the same, and compiling those with many parts takes a sixth less time.
"""

from __future__ import annotations

import pickle
from typing import Any

from llvmlite import binding  # pyright: ignore[reportMissingTypeStubs]
from numba.core import codegen, compiler

__all__ = ["PartCompiler", "load_part"]

# numba is not typed.
_binding: Any = binding
_Library: Any = codegen.JITCodeLibrary
_Compiler: Any = compiler.Compiler
_result: Any = compiler.CompileResult


class _PartLibrary(_Library):
    """The code of a part, which is only optimized function by function."""

    def _optimize_final_module(self) -> None:
        """Do nothing; numba would optimize the whole module."""

    def _finalize_final_module(self) -> None:
        """Do not generate machine code."""
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Return that there is no machine code."""
        self._ensure_finalized()
        return 0

    def serialize_using_object_code(self) -> tuple[str, str, bytes]:
        """Return the code for saving."""
        return self.serialize_using_bitcode()

    @property
    def codegen(self) -> _NoMachineCode:
        """What stores addresses in machine code."""
        return _NoMachineCode()


class _NoMachineCode:
    """Has the function of numba's class that machine code needs."""

    def set_env(self, env_name: str, env: Any) -> None:
        """Do nothing; numba would store the address of constants of Python, which parts do not use."""


class PartCompiler(_Compiler):
    """Compiles parts; an argument ``pipeline_class`` of ``numba.njit``."""

    def define_pipelines(self) -> Any:
        """Return the passes of numba."""
        library = _PartLibrary(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
        library.enable_object_caching()
        self.state.library = library
        return _Compiler.define_pipelines(self)


class _PartContext:
    """The context of numba, with libraries of parts.

    Args:
        context: context of numba.
    """

    def __init__(self, context: Any) -> None:
        self._context = context

    def codegen(self) -> _PartContext:
        """Return the object that makes libraries."""
        return self

    def unserialize_library(self, saved: tuple[str, str, bytes]) -> Any:
        """Return a library that was saved."""
        name, _, code = saved
        library: Any = _PartLibrary(self._context.codegen(), name)
        library._final_module = _binding.parse_bitcode(code)
        library._finalize_final_module()
        return library

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the context."""
        return getattr(self._context, name)


def load_part(context: Any, body: bytes) -> Any:
    """Return a part that was saved, as numba's result of a compilation.

    Args:
        context: context of numba.
        body: what numba serializes of such a result.
    """
    return _result._rebuild(_PartContext(context), *pickle.loads(body))._replace(target_context=context)
