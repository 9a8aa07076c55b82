"""What of SQLAlchemy's suite cannot be asked of a source that is only read, and what beyond the usual can."""

from __future__ import annotations

from sqlalchemy.testing import exclusions
from sqlalchemy.testing.requirements import SuiteRequirements


def _no(why: str) -> property:
    return property(lambda self: exclusions.skip_if(lambda: True, why))


_YES = property(lambda self: exclusions.open())
_ONLY_READ = "nothing is written"
_ONE_SCHEMA = "all relations are in one schema, and none is temporary or a view"
_NO_CONSTRAINTS = "a relation declares its key, and no other constraint or index"


class Requirements(SuiteRequirements):
    autoincrement_insert = _no(_ONLY_READ)
    empty_inserts = _no(_ONLY_READ)
    insert_from_select = _no(_ONLY_READ)
    duplicate_key_raises_integrity_error = _no(_ONLY_READ)
    savepoints = _no(_ONLY_READ)
    implements_get_lastrowid = _no(_ONLY_READ)

    schemas = _no(_ONE_SCHEMA)
    temporary_tables = _no(_ONE_SCHEMA)
    temp_table_reflection = _no(_ONE_SCHEMA)
    views = _no(_ONE_SCHEMA)

    foreign_key_constraint_reflection = _no(_NO_CONSTRAINTS)
    index_reflection = _no(_NO_CONSTRAINTS)
    indexes_with_ascdesc = _no(_NO_CONSTRAINTS)
    unique_constraint_reflection = _no(_NO_CONSTRAINTS)
    named_constraints = _no(_NO_CONSTRAINTS)
    implicitly_named_constraints = _no(_NO_CONSTRAINTS)

    ctes = _YES
    ctes_with_values = _YES
    table_value_constructor = _YES
    window_functions = _YES
    window_range = _YES
    intersect = _YES
    except_ = _YES
    tuple_in = _YES
    regexp_match = _YES
    regexp_replace = _YES
    supports_bitwise_and = _YES
    supports_bitwise_or = _YES
    supports_bitwise_xor = _YES
    supports_bitwise_not = _YES
    supports_bitwise_shift = _YES
    nullsordering = _YES
    datetime_literals = _YES
    datetime_interval = _YES
    datetime_timezone = _YES
    timestamp_microseconds = _YES
    precision_numerics_many_significant_digits = _YES
    precision_numerics_retains_significant_digits = _YES
    cast_precision_numerics_many_significant_digits = _YES
    infinity_floats = _YES
    uuid_data_type = _YES
    array_type = _YES
    unicode_ddl = _YES
    group_by_complex_expression = _YES
    order_by_label_with_expression = _YES
    expressions_against_unbounded_text = _YES
    mod_operator_as_percent_sign = _YES
    percent_schema_names = _YES
    sql_expression_limit_offset = _YES
    supports_distinct_on = _YES
