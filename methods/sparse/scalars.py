"""Single numbers in arrays, and tiles that become numbers: products of vectors summed over their lanes."""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from methods.sparse.lanes import FLOAT, INDEX, VECTOR, Row, element, llvm_fma, llvm_function


def _reader(kind: types.Type, stored: ir.Type) -> Callable:
    @intrinsic
    def read(typing, address, at):
        def make(context, builder, signature, arguments):
            return builder.load(element(builder, stored, *arguments), typ=stored)

        return kind(types.intp, types.intp), make

    return read


float_at = _reader(types.float32, FLOAT)
int_at = _reader(types.int32, ir.IntType(32))


@intrinsic
def add_to_float(typing, address, at, value):
    """array[at] += value."""

    def make(context, builder, signature, arguments):
        place = element(builder, FLOAT, *arguments[:2])
        builder.store(builder.fadd(builder.load(place, typ=FLOAT), arguments[2]), place)
        return context.get_dummy_value()

    return types.none(types.intp, types.intp, types.float32), make


@intrinsic
def add_products(typing, tile, rows, columns, left, left_at, left_step, right, right_at, offsets, entry):
    """tile[r, c] + left[r] * right[c] for vectors left_step apart and vectors at `right_at` + offsets[entry + c] (int32)."""
    height, width = rows.count, columns.count

    def make(context, builder, signature, arguments):
        total, _, _, left, left_at, left_step, right, right_at, offsets, entry = arguments
        row = Row(builder, left, left_at, left_step)
        factors = [row.load(r) for r in range(height)]
        for c in range(width):
            place = builder.add(entry, ir.Constant(INDEX, c))
            offset = builder.sext(builder.load(element(builder, ir.IntType(32), offsets, place), typ=ir.IntType(32)), INDEX)
            vector = Row(builder, right, builder.add(right_at, offset), ir.Constant(INDEX, 0)).load(0)
            for r in range(height):
                k = r * width + c
                total = builder.insert_value(total, llvm_fma(builder, vector, factors[r], builder.extract_value(total, k)), k)
        return total

    return tile(tile, rows, columns, *[types.intp] * 7), make


@intrinsic
def store_lane_sums(typing, address, at, tile):
    """Write the sum over lanes of each vector of a tile."""

    def make(context, builder, signature, arguments):
        address, at, vectors = arguments
        total = llvm_function(builder, "llvm.vector.reduce.fadd.v16f32", FLOAT, [FLOAT, VECTOR])
        for k in range(tile.size):
            # reassoc: halves are added to each other, always in the same way, in place of one lane after the other
            result = builder.call(total, [ir.Constant(FLOAT, -0.0), builder.extract_value(vectors, k)], fastmath=("reassoc",))
            builder.store(result, element(builder, FLOAT, address, builder.add(at, ir.Constant(INDEX, k))))
        return context.get_dummy_value()

    return types.none(types.intp, types.intp, tile), make
