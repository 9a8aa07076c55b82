"""What is remembered of pages stays within its bytes."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from mediator.access.fresh.remembered import Memory, Remembered
from mediator.access.fresh.validators import Validators
from mediator.catalog.wrapper import Page, Request


def entry(size: int, further: int = 0) -> Remembered:
    rows = pa.RecordBatch.from_pydict({"v": pa.array(["x" * size])})
    return Remembered(Validators(tag='"a"'), Page(rows, tuple(Request(f"/{n}") for n in range(further))))


def test_what_was_used_least_recently_is_forgotten_first() -> None:
    memory = Memory(5 * entry(10_000).size)
    for key in range(5):
        memory.put(key, entry(10_000))
    assert memory.get(0) is not None
    memory.put(5, entry(10_000))
    assert [key for key in range(6) if memory.get(key)] == [0, 2, 3, 4, 5]


def test_what_would_drive_out_the_rest_is_not_remembered() -> None:
    memory = Memory(100_000)
    memory.put("small", entry(10))
    memory.put("large", entry(90_000))
    assert memory.get("large") is None
    assert memory.get("small") is not None
    memory.put("small", entry(90_000))
    assert memory.get("small") is None, "what it replaces is of no use any more either"
    assert memory.size == len(memory) == 0


def test_further_requests_count_too() -> None:
    assert entry(10, further=100).size > entry(10).size + 50_000


@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.sampled_from(["put", "get", "forget"]), st.integers(0, 60_000)),
        max_size=40,
    )
)
def test_it_never_holds_more_than_it_may(steps: list[tuple[int, str, int]]) -> None:
    memory, model = Memory(100_000), dict[int, Remembered]()
    for key, verb, size in steps:
        if verb == "put":
            memory.put(key, entry(size))
            model[key] = entry(size)
        elif verb == "forget":
            memory.forget(key)
            model.pop(key, None)
        else:
            found = memory.get(key)
            assert found is None or found.page.rows.equals(model[key].page.rows)
        assert memory.size <= 100_000
        held = [k for k in range(6) if k in memory._entries]
        assert memory.size == sum(memory._entries[k].size for k in held)
