"""Eight bytes at once, wherever in a byte array they lie: Numba itself only reads where they are aligned.

Neither looks at bounds. A caller makes sure that there are eight bytes from the place on.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic


def _read_word(typing: Any, data: Any, at: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word = builder.load(_place(context, builder, signature, arguments))
        word.align = 1
        return word

    return types.uint64(data, types.int64), generate


def _write_word(typing: Any, data: Any, at: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.store(arguments[2], _place(context, builder, signature, arguments), align=1)
        return context.get_dummy_value()

    return types.void(data, types.int64, types.uint64), generate


def _place(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    return builder.bitcast(builder.gep(array.data, [arguments[1]]), ir.IntType(64).as_pointer())


read_word: Any = intrinsic(_read_word)
write_word: Any = intrinsic(_write_word)
