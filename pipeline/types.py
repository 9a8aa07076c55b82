"""Arrow's types and Spark's: which column becomes what, and batches in the form that Spark takes.

Spark takes batches only in the very types that it would write itself, so all others are cast; what a cast would change
is refused in words.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from pyspark.sql import types as spark
from pyspark.sql.pandas.types import to_arrow_schema

from pipeline.errors import NoSuchType

_MOST_DIGITS = 38  # of a number that Spark keeps exactly
_SIMPLE: dict[pa.DataType, spark.DataType] = {
    pa.null(): spark.NullType(),
    pa.bool_(): spark.BooleanType(),
    pa.int8(): spark.ByteType(),
    pa.int16(): spark.ShortType(),
    pa.int32(): spark.IntegerType(),
    pa.int64(): spark.LongType(),
    # Each in the next wider type, as Spark has none without a sign.
    pa.uint8(): spark.ShortType(),
    pa.uint16(): spark.IntegerType(),
    pa.uint32(): spark.LongType(),
    pa.uint64(): spark.DecimalType(20, 0),
    pa.float16(): spark.FloatType(),
    pa.float32(): spark.FloatType(),
    pa.float64(): spark.DoubleType(),
    pa.string(): spark.StringType(),
    pa.large_string(): spark.StringType(),
    pa.string_view(): spark.StringType(),
    pa.binary(): spark.BinaryType(),
    pa.large_binary(): spark.BinaryType(),
    pa.binary_view(): spark.BinaryType(),
    pa.date32(): spark.DateType(),
    pa.date64(): spark.DateType(),
}


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of an answer, as the engine gives them and as Spark takes them."""

    given: pa.Schema
    taken: spark.StructType
    arrow: pa.Schema  # of the batches that Spark takes

    @classmethod
    def of(cls, given: pa.Schema) -> Columns:
        """Raises `NoSuchType` where Spark has no type for a column, and says which and what would help."""
        taken = spark.StructType([spark.StructField(f.name, spark_type(f.type, f.name)) for f in given])
        return cls(given, taken, to_arrow_schema(taken, timezone="UTC"))

    def arranged(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The same rows in Spark's types. Raises `NoSuchType` for a value that would not be the same there."""
        arrays = [
            _cast(array, want.type, want.name) for array, want in zip(batch.columns, self.arrow, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.arrow)


def spark_type(type_: pa.DataType, column: str) -> spark.DataType:
    """What a column of this type is in Spark."""
    if (simple := _SIMPLE.get(type_)) is not None:
        return simple
    if pt.is_decimal(type_) and type_.precision <= _MOST_DIGITS and 0 <= type_.scale <= type_.precision:
        return spark.DecimalType(type_.precision, type_.scale)
    if pt.is_timestamp(type_):
        return spark.TimestampNTZType() if type_.tz is None else spark.TimestampType()
    if pt.is_duration(type_):
        return spark.DayTimeIntervalType()
    if pt.is_fixed_size_binary(type_):
        return spark.BinaryType()
    if pt.is_dictionary(type_):
        return spark_type(type_.value_type, column)
    if pt.is_struct(type_):
        return spark.StructType([spark.StructField(f.name, spark_type(f.type, column)) for f in type_])
    if pt.is_map(type_):
        return spark.MapType(spark_type(type_.key_type, column), spark_type(type_.item_type, column))
    if pt.is_list(type_) or pt.is_large_list(type_) or pt.is_fixed_size_list(type_):
        return spark.ArrayType(spark_type(type_.value_type, column))
    raise NoSuchType(
        f"the column {column} is of type {type_}, for which Spark has none that holds all its values: cast it in the "
        f"query, as in {column}::VARCHAR"
    )


def _cast(array: pa.Array, type_: pa.DataType, column: str) -> pa.Array:
    if array.type == type_:
        return array
    if pt.is_dictionary(array.type):
        array = array.dictionary_decode()
    try:
        return pc.cast(array, type_)
    except pa.ArrowException as error:
        raise NoSuchType(
            f"the column {column} has a value that Spark's {type_} does not hold ({error}): cast it in the query, "
            f"as in {column}::VARCHAR, or to one with fewer digits"
        ) from None
