"""Vectors of sixteen float32 in numba: one AVX-512 register, or two of AVX2.

numba has arrays and scalars only, and an accumulator in an array is loaded and stored for every kept weight. A `Tile` is a number of
vectors that live in registers; the functions below are the operations on tiles that the kernels need, each written as the LLVM
instructions that it stands for. A tuple gives a tile its size by its length: `zeros((0, 0, 0, 0))` is a tile of four vectors.

Kernels get arrays as the addresses of their first elements, 0 for none: numba counts references to arrays at every call, with atomic
instructions that would cost as much as the work of a row. Who calls a kernel keeps the arrays alive. Positions in arrays count elements.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir
from llvmlite.binding import get_host_cpu_features
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, register_model

LANES = 16
ONE = (0,)  # a tile of one vector
WIDE = bool(get_host_cpu_features().get("avx512f"))  # registers of a vector's size, and 32 of them
FLOAT = ir.FloatType()
VECTOR = ir.VectorType(FLOAT, LANES)
INDEX = ir.IntType(64)
ZERO = ir.Constant(VECTOR, [0.0] * LANES)


class Tile(types.Type):
    """`size` vectors in registers."""

    def __init__(self, size: int):
        self.size = size
        super().__init__(name=f"Tile({size})")


@register_model(Tile)
class TileModel(models.PrimitiveModel):
    def __init__(self, manager, tile):
        super().__init__(manager, tile, ir.ArrayType(VECTOR, tile.size))


def llvm_function(builder: ir.IRBuilder, name: str, result: ir.Type, arguments: list[ir.Type]) -> ir.Function:
    return cgutils.get_or_insert_function(builder.module, ir.FunctionType(result, arguments), name)


def llvm_fma(builder: ir.IRBuilder, a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
    return builder.call(llvm_function(builder, "llvm.fma.v16f32", VECTOR, [VECTOR] * 3), [a, b, c])


def llvm_spread(builder: ir.IRBuilder, scalar: ir.Value) -> ir.Value:
    undefined = ir.Constant(VECTOR, ir.Undefined)
    first = builder.insert_element(undefined, scalar, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES))


def element(builder: ir.IRBuilder, kind: ir.Type, address: ir.Value, at: ir.Value) -> ir.Value:
    return builder.gep(builder.inttoptr(address, kind.as_pointer()), [at], source_etype=kind)


class Row:
    """Vectors of an array of floats from a position on, `step` floats apart."""

    def __init__(self, builder: ir.IRBuilder, address: ir.Value, at: ir.Value, step: ir.Value):
        self.builder, self.step = builder, step
        self.start = element(builder, FLOAT, address, at)

    def _pointer(self, k: int) -> ir.Value:
        place = self.builder.gep(self.start, [self.builder.mul(self.step, ir.Constant(INDEX, k))])
        return self.builder.bitcast(place, VECTOR.as_pointer())

    def load(self, k: int) -> ir.Value:
        return self.builder.load(self._pointer(k), align=4)

    def store(self, k: int, value: ir.Value) -> None:
        self.builder.store(value, self._pointer(k), align=4)


def each(builder: ir.IRBuilder, size: int, make: Callable[[int], ir.Value]) -> ir.Value:
    """A tile of `make(0)`, `make(1)`, ..."""
    tile = ir.Constant(ir.ArrayType(VECTOR, size), ir.Undefined)
    for k in range(size):
        tile = builder.insert_value(tile, make(k), k)
    return tile


@intrinsic
def zeros(typing, size):
    """A tile of zeros, as large as the tuple is long."""

    def make(context, builder, signature, arguments):
        return each(builder, size.count, lambda k: ZERO)

    return Tile(size.count)(size), make


@intrinsic
def spread(typing, size, scalar):
    """A tile with one number in all lanes."""

    def make(context, builder, signature, arguments):
        vector = llvm_spread(builder, arguments[1])
        return each(builder, size.count, lambda k: vector)

    return Tile(size.count)(size, types.float32), make


@intrinsic
def load(typing, size, address, at, step):
    """Vectors of an array from `at` on, `step` apart."""

    def make(context, builder, signature, arguments):
        row = Row(builder, *arguments[1:])
        return each(builder, size.count, row.load)

    return Tile(size.count)(size, types.intp, types.intp, types.intp), make


@intrinsic
def store(typing, address, at, step, tile):
    """Write a tile's vectors to an array from `at` on, `step` apart."""

    def make(context, builder, signature, arguments):
        row = Row(builder, *arguments[:3])
        for k in range(tile.size):
            row.store(k, builder.extract_value(arguments[3], k))
        return context.get_dummy_value()

    return types.none(types.intp, types.intp, types.intp, tile), make


@intrinsic
def store_past(typing, address, at, vector):
    """Write a tile of one vector to memory past the caches: it will not be read soon. The place must be aligned."""

    def make(context, builder, signature, arguments):
        address, at, vector = arguments
        place = builder.bitcast(element(builder, FLOAT, address, at), VECTOR.as_pointer())
        written = builder.store(builder.extract_value(vector, 0), place, align=4 * LANES)
        written.set_metadata("nontemporal", builder.module.add_metadata([ir.Constant(ir.IntType(32), 1)]))
        return context.get_dummy_value()

    return types.none(types.intp, types.intp, vector), make


@intrinsic
def add(typing, a, b):
    """a + b."""

    def make(context, builder, signature, arguments):
        first, second = arguments
        return each(builder, a.size, lambda k: builder.fadd(builder.extract_value(first, k), builder.extract_value(second, k)))

    return a(a, b), make


@intrinsic
def fma(typing, a, b, c):
    """a * b + c, rounded once."""

    def make(context, builder, signature, arguments):
        return each(builder, a.size, lambda k: llvm_fma(builder, *(builder.extract_value(tile, k) for tile in arguments)))

    return a(a, b, c), make


@intrinsic
def add_scaled(typing, tile, address, at, step, factor):
    """tile + factor * vectors of an array: what one kept weight does."""

    def make(context, builder, signature, arguments):
        row, factors = Row(builder, *arguments[1:4]), llvm_spread(builder, arguments[4])
        return each(builder, tile.size, lambda k: llvm_fma(builder, row.load(k), factors, builder.extract_value(arguments[0], k)))

    return tile(tile, types.intp, types.intp, types.intp, types.float32), make


@intrinsic
def positive(typing, a):
    """max(a, 0)."""

    def make(context, builder, signature, arguments):
        def one(k: int) -> ir.Value:
            vector = builder.extract_value(arguments[0], k)
            return builder.select(builder.fcmp_ordered(">", ZERO, vector), ZERO, vector)  # NaN stays NaN, as in torch

        return each(builder, a.size, one)

    return a(a), make


@intrinsic
def larger(typing, a, b):
    """The larger of each two."""

    def make(context, builder, signature, arguments):
        def one(k: int) -> ir.Value:
            first, second = (builder.extract_value(tile, k) for tile in arguments)
            return builder.select(builder.fcmp_ordered("<", first, second), second, first)

        return each(builder, a.size, one)

    return a(a, b), make


@intrinsic
def add_scaled_all(typing, tile, rows, columns, address, at, step, factors, entry):
    """tile[r, c] + factors[entry + r] * vectors[c] of an array: what one input does to several channels."""
    height, width = rows.count, columns.count

    def make(context, builder, signature, arguments):
        tile, _, _, address, at, step, factors, entry = arguments
        row = Row(builder, address, at, step)
        vectors = [row.load(c) for c in range(width)]
        for r in range(height):
            place = element(builder, FLOAT, factors, builder.add(entry, ir.Constant(INDEX, r)))
            factor = llvm_spread(builder, builder.load(place, typ=FLOAT))
            for k, vector in enumerate(vectors, r * width):
                tile = builder.insert_value(tile, llvm_fma(builder, vector, factor, builder.extract_value(tile, k)), k)
        return tile

    return tile(tile, rows, columns, *[types.intp] * 5), make
