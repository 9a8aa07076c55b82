"""The one piece that decides: delays, limits, faults, counters. Pure, so time is a number here."""

import pytest

from fixtures import Behaviour, Fault, Fixed, Pareto, RateLimit, Uniform, paced
from fixtures.endpoint import Answer, Endpoint, Outcome
from mediator.catalog.wrapper import Request


class Echo:
    def lookups(self, request: Request) -> tuple[str, ...]:
        return tuple(v for _, v in request.query)

    def answer(self, request: Request, *, endless: bool = False) -> Answer:
        return Answer(
            b'{"name": "endless"}' if endless else b'{"name": "value"}', redesign=(b"name", b"title")
        )


def endpoint(behaviour: Behaviour, seed: int = 1) -> Endpoint:
    made = Endpoint("echo", "/echo", Echo(), seed)
    made.behaviour = behaviour
    return made


def ask(to: Endpoint, now: float = 0.0, *values: str) -> Outcome:
    return to.decide(Request("/echo", tuple(("v", v) for v in values)), now)


def test_calm_is_at_once() -> None:
    assert ask(endpoint(Behaviour())) == Outcome(
        0.0, 200, (("Content-Type", "application/json"),), b'{"name": "value"}'
    )


def test_excess_requests_queue_for_a_place() -> None:
    slow = endpoint(Behaviour(latency=Fixed(1.0), concurrency=2))
    assert [ask(slow, 0.0).delay for _ in range(5)] == [1.0, 1.0, 2.0, 2.0, 3.0]
    assert ask(slow, 10.0).delay == 1.0


def test_pages_come_at_a_pace() -> None:
    r = endpoint(paced(rows_per_second=100, page_size=50))
    assert [ask(r, 0.0).delay for _ in range(3)] == [0.5, 1.0, 1.5]


@pytest.mark.parametrize(
    ("now", "done"),
    [(0.0, 1.0), (1.5, 4.5), (2.0, 5.0), (3.0, 5.0), (4.0, 5.0), (4.5, 5.5)],
)
def test_nothing_is_answered_in_a_stall(now: float, done: float) -> None:
    stalled = endpoint(Behaviour(latency=Fixed(1.0), stalls=((2.0, 4.0),)))
    assert now + ask(stalled, now).delay == done


def test_nothing_is_answered_before_the_initial_delay() -> None:
    late = endpoint(Behaviour(latency=Fixed(0.5), initial_delay=2.0))
    assert ask(late, 0.0).delay == 2.5
    assert ask(late, 3.0).delay == 0.5


def test_a_rate_limit_says_when_to_come_back() -> None:
    limited = endpoint(Behaviour(limit=RateLimit(rate=0.5, burst=2)))
    outcomes = [ask(limited, 0.0) for _ in range(3)]
    assert [o.status for o in outcomes] == [200, 200, 429]
    assert dict(outcomes[2].headers)["Retry-After"] == "2"
    assert ask(limited, 2.0).status == 200
    assert ask(limited, 2.0).status == 429
    assert limited.counters.faults == {"limited": 2}


def test_a_script_says_which_requests_fail() -> None:
    scripted = endpoint(Behaviour(faults=(Fault("error", requests=(2, 5)),)))
    assert [ask(scripted).status for _ in range(6)] == [200, 503, 200, 200, 503, 200]


def test_the_first_attempts_of_each_lookup_fail() -> None:
    flaky = endpoint(Behaviour(faults=(Fault("error", attempts=2, status=500),)))
    asked = ["a", "b", "a", "a", "b", "b"]
    assert [ask(flaky, 0.0, v).status for v in asked] == [500, 500, 500, 200, 500, 200]
    assert flaky.counters.lookups == {"a": 3, "b": 3}


def test_some_lookups_or_some_time_can_be_doomed() -> None:
    doomed = endpoint(Behaviour(faults=(Fault("reset", lookups=("b",)), Fault("error", between=(5.0, 6.0)))))
    assert [ask(doomed, 0.0, v).fault for v in ("a", "b", "b")] == [None, "reset", "reset"]
    assert ask(doomed, 5.5, "a").status == 503
    assert ask(doomed, 6.0, "a").status == 200


def test_bodies_are_spoilt_as_the_fault_says() -> None:
    bodies = {
        k: ask(endpoint(Behaviour(faults=(Fault(k, requests=(1,)),)))).body for k in ("schema", "endless")
    }
    assert bodies == {"schema": b'{"title": "value"}', "endless": b'{"name": "endless"}'}
    garbage = ask(endpoint(Behaviour(faults=(Fault("garbage", requests=(1,)),)))).body
    with pytest.raises(UnicodeDecodeError):
        garbage.decode()


def test_chance_follows_the_seed_and_the_lookup_and_not_the_order() -> None:
    behaviour = Behaviour(latency=Uniform(0, 1), faults=(Fault("error", probability=0.3),))
    names = [str(n) for n in range(200)]
    one, other = endpoint(behaviour), endpoint(behaviour)
    forwards = {n: ask(one, 0.0, n) for n in names}
    backwards = {n: ask(other, 0.0, n) for n in reversed(names)}
    assert forwards == backwards
    assert 30 <= one.counters.faults["error"] <= 90
    assert {n: ask(endpoint(behaviour, seed=2), 0.0, n) for n in names} != forwards


def test_pareto_is_long_tailed_and_bounded() -> None:
    slow = endpoint(Behaviour(latency=Pareto(0.1, shape=1.0, most=5.0)))
    delays = sorted(ask(slow, 0.0, str(n)).delay for n in range(500))
    assert delays[0] >= 0.1
    assert delays[250] < 0.3
    assert 1.0 < delays[-1] <= 5.0
