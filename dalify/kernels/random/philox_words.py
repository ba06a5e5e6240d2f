"""Philox4x32-10 for compiled functions, as intrinsics, because numba takes much longer to compile it from Python."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from dalify.base.compiling import intrinsic
from dalify.base.llvm import offset, store

_cgutils: Any = cgutils  # numba is not typed

_MULTIPLIER_0, _MULTIPLIER_1 = 0xD2511F53, 0xCD9E8D57
_WEYL_0, _WEYL_1 = 0x9E3779B9, 0xBB67AE85
_LOW_32 = 0xFFFFFFFF
_ROUNDS = 10
_WORDS = 4
_WORD_BYTES = 4
_WIDE, _WORD = ir.IntType(64), ir.IntType(32)


def _constant(value: int) -> Any:
    return ir.Constant(_WIDE, value)


def _block(builder: ir.IRBuilder, counter: list[Any], key: list[Any]) -> list[Any]:
    """Emit the computation of the four words of one counter and key; all are 32-bit words in int64."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for number in range(_ROUNDS):
        if number:
            k0 = builder.and_(builder.add(k0, _constant(_WEYL_0)), _constant(_LOW_32))
            k1 = builder.and_(builder.add(k1, _constant(_WEYL_1)), _constant(_LOW_32))
        p0, p1 = builder.mul(c0, _constant(_MULTIPLIER_0)), builder.mul(c2, _constant(_MULTIPLIER_1))
        high_0, high_1 = builder.lshr(p0, _constant(32)), builder.lshr(p1, _constant(32))
        c0, c1 = builder.xor(builder.xor(high_1, c1), k0), builder.and_(p1, _constant(_LOW_32))
        c2, c3 = builder.xor(builder.xor(high_0, c3), k1), builder.and_(p0, _constant(_LOW_32))
    return [c0, c1, c2, c3]


@intrinsic
def philox4x32(typing_context: Any, c0: Any, c1: Any, c2: Any, c3: Any, k0: Any, k1: Any) -> tuple[Any, Any]:
    """Return the four 32-bit words (in uint64) of one counter and key (32-bit words in uint64)."""
    found = types.UniTuple(types.uint64, _WORDS)

    def generate(context: Any, builder: Any, signature: Any, arguments: tuple[Any, ...]) -> Any:
        words = _block(builder, list(arguments[:4]), list(arguments[4:]))
        return context.make_tuple(builder, found, words)

    return found(*[types.uint64] * 6), generate


@intrinsic
def store_words(
    typing_context: Any,
    target: Any,
    count: Any,
    sample: Any,
    first_block: Any,
    k0: Any,
    k1: Any,
    step: Any,
) -> tuple[Any, Any]:
    """Store `count` words of `Draws.bits` of one sample, uint32, from the address `target` on."""

    def generate(context: Any, builder: Any, signature: Any, arguments: tuple[Any, ...]) -> Any:
        target, count, sample, first_block, k0, k1, step = arguments

        def low(value: Any) -> Any:
            return builder.and_(value, _constant(_LOW_32))

        rest_of_counter = [low(sample), low(step), builder.lshr(step, _constant(32))]

        def words_at(at: Any) -> tuple[list[Any], Any]:
            block = low(builder.add(first_block, builder.lshr(at, _constant(2))))
            words = _block(builder, [block, *rest_of_counter], [k0, k1])
            address = builder.add(target, builder.mul(at, _constant(_WORD_BYTES)))
            return [builder.trunc(word, _WORD) for word in words], address

        whole = builder.and_(count, _constant(-_WORDS))
        with _cgutils.for_range_slice(builder, _constant(0), whole, _constant(_WORDS), _WIDE) as (at, _):
            words, address = words_at(at)
            for number, word in enumerate(words):
                store(builder, word, offset(builder, address, number * _WORD_BYTES), _WORD_BYTES)
        with builder.if_then(builder.icmp_signed("<", whole, count)):
            words, address = words_at(whole)
            for number, word in enumerate(words[:-1]):
                with builder.if_then(builder.icmp_signed("<", builder.add(whole, _constant(number)), count)):
                    store(builder, word, offset(builder, address, number * _WORD_BYTES), _WORD_BYTES)
        return context.get_dummy_value()

    signature = types.void(
        types.int64, types.int64, types.uint64, types.uint64, types.uint64, types.uint64, types.uint64
    )
    return signature, generate
