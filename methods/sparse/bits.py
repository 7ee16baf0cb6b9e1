"""Sixteen bits, one per lane: where a vector is above 0, or as large as another. In registers, and in arrays of uint16."""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from methods.sparse.lanes import LANES, ZERO, each, element

BITS = ir.VectorType(ir.IntType(1), LANES)


@intrinsic
def reached(typing, a, b):
    """Where a tile of one vector is at least as large as another, as sixteen bits."""

    def make(context, builder, signature, arguments):
        first, second = (builder.extract_value(tile, 0) for tile in arguments)
        return builder.bitcast(builder.fcmp_ordered(">=", first, second), ir.IntType(16))

    return types.uint16(a, b), make


@intrinsic
def signs(typing, a):
    """Which lanes of a tile of one vector are above 0, as sixteen bits."""

    def make(context, builder, signature, arguments):
        above = builder.fcmp_ordered(">", builder.extract_value(arguments[0], 0), ZERO)
        return builder.bitcast(above, ir.IntType(16))

    return types.uint16(a), make


@intrinsic
def keep(typing, a, bits):
    """A tile of one vector with zeros in the lanes whose bit is 0."""

    def make(context, builder, signature, arguments):
        chosen = builder.bitcast(arguments[1], BITS)
        return each(builder, 1, lambda k: builder.select(chosen, builder.extract_value(arguments[0], 0), ZERO))

    return a(a, types.uint16), make


@intrinsic
def bits_at(typing, address, at):
    """Read sixteen bits."""

    def make(context, builder, signature, arguments):
        return builder.load(element(builder, ir.IntType(16), *arguments), typ=ir.IntType(16))

    return types.uint16(types.intp, types.intp), make


@intrinsic
def put_bits(typing, address, at, bits):
    """Write sixteen bits."""

    def make(context, builder, signature, arguments):
        builder.store(arguments[2], element(builder, ir.IntType(16), *arguments[:2]))
        return context.get_dummy_value()

    return types.none(types.intp, types.intp, types.uint16), make
