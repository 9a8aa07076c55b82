"""Memory by other means than Numba's own.

`read_word` and `write_word` take eight bytes at once, wherever in a byte array they lie: Numba itself only reads where
they are aligned. Neither looks at bounds. A caller makes sure that there are eight bytes from the place on.

`prefetch` has an entry of an array brought near, so that it is there when it is read a little later. A place outside
the array does no harm. Loops that read at random do it `AHEAD` entries before they come to one, so that memory is
always busy with many: where they did it block by block, it had nothing to do while a block was read, and an index of
10 million keys took twice as long.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

AHEAD = 64  # entries: more are not under way at once, and fewer have not come when their turn does


def _read_word(typing: Any, data: Any, at: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word = builder.load(_word(context, builder, signature, arguments))
        word.align = 1
        return word

    return types.uint64(data, types.int64), generate


def _write_word(typing: Any, data: Any, at: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.store(arguments[2], _word(context, builder, signature, arguments), align=1)
        return context.get_dummy_value()

    return types.void(data, types.int64, types.uint64), generate


def _word(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    return builder.bitcast(_place(context, builder, signature, arguments), ir.IntType(64).as_pointer())


def _place(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    return builder.gep(array.data, [arguments[1]])


read_word: Any = intrinsic(_read_word)
write_word: Any = intrinsic(_write_word)


def _prefetch(typing: Any, data: Any, at: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        place = builder.bitcast(_place(context, builder, signature, arguments), byte)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        fetch = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        # For reading, to stay in every cache, data.
        builder.call(fetch, [place, *(ir.Constant(number, n) for n in (0, 3, 1))])
        return context.get_dummy_value()

    return types.void(data, types.int64), generate


prefetch: Any = intrinsic(_prefetch)
