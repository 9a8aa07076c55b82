"""A look at a running query: plain data, right at any moment."""

from __future__ import annotations

import json

import pytest

from fixtures import Behaviour, Web, book_trade_web
from fixtures.behaviour import Fixed
from mediator.assembly import POLICIES
from mediator.eddy.decisions import Decision
from mediator.live import Live
from tests.answering.kit import in_virtual_time, mediating

SQL = "SELECT b.title, o.price, p.prize FROM books b JOIN offers o ON o.isbn = b.isbn JOIN prizes p ON p.isbn = b.isbn"


def _web() -> Web:
    web = book_trade_web(60, book_page=20)
    web.behave("offers_north", Behaviour(latency=Fixed(1.0)))
    web.behave("offers_south", Behaviour(latency=Fixed(1.0)))
    return web


@pytest.mark.parametrize("policy", POLICIES)
def test_shares_add_up_and_the_answers_are_among_them(policy: str) -> None:
    told: list[Decision] = []

    async def run() -> tuple[Live, int]:
        async with mediating(_web()) as mediator:
            answers = mediator.answering(SQL, watch=told.append, policy=policy)
            assert answers.live() == Live()
            async with answers:
                rows = sum([batch.num_rows async for batch in answers])
                return answers.live(), rows

    live, rows = in_virtual_time(run())
    assert live.finished
    (block,) = live.blocks
    assert block.policy == policy
    assert (block.batches, block.rows, block.waiting) == (0, 0, 0)
    for signature in block.signatures:
        assert sum(share.rows for share in signature.shares) == signature.rows
        assert sum(share.share for share in signature.shares) == pytest.approx(1.0 if signature.rows else 0.0)
        assert sum(share.chosen for share in signature.shares) <= 1
    left = [s for signature in block.signatures for s in signature.shares if s.destination == "answer"]
    assert sum(share.rows for share in left) == rows > 0
    assert block.decisions == len(told)
    assert list(block.last) == told[-len(block.last) :]
    assert told


def test_what_is_asked_stored_and_covered_shows_while_it_runs() -> None:
    looks: list[Live] = []

    async def run() -> None:
        async with mediating(_web()) as mediator:
            answers = mediator.answering(SQL, watch=lambda decision: None)
            async with answers:
                looks.append(answers.live())
                async for _ in answers:
                    pass
                looks.append(answers.live())

    in_virtual_time(run())
    assert not looks[0].finished
    stems = {stem.relation: stem for stem in looks[-1].blocks[0].stems}
    assert stems["books"].whole
    assert stems["books"].stored == stems["books"].given > 0
    assert stems["offers"].answered == stems["offers"].asked > 0
    assert not stems["offers"].whole
    sources = {source.source for source in looks[-1].sources}
    assert {"prices_north", "prices_south"} <= sources
    assert not {"reviewers", "libraries"} & sources


def test_it_is_plain_json() -> None:
    async def run() -> Live:
        async with mediating(_web()) as mediator, mediator.answering(SQL, watch=lambda d: None) as answers:
            async for _ in answers:
                pass
            return answers.live()

    told = json.loads(json.dumps(in_virtual_time(run()).to_dict(), allow_nan=False))
    assert told["finished"] is True
    block = told["blocks"][0]
    assert block["floating"] == {"batches": 0, "rows": 0, "waiting": 0}
    assert {"destination", "share", "fan_out", "us_a_row", "figures"} <= block["signatures"][0]["shares"][
        0
    ].keys()
    assert block["last"][0]["why"]


def test_without_an_onlooker_shares_are_there_and_decisions_are_not() -> None:
    async def run() -> Live:
        async with mediating(_web()) as mediator, mediator.answering(SQL) as answers:
            async for _ in answers:
                pass
            return answers.live()

    (block,) = in_virtual_time(run()).blocks
    assert block.signatures
    assert (block.decisions, block.last) == (0, ())


def test_looking_changes_no_route() -> None:
    def routed(look: bool) -> list[tuple[str, str, int]]:
        async def run() -> Live:
            async with mediating(_web()) as mediator:
                said = {"watch": lambda decision: None} if look else {}
                async with mediator.answering(SQL, policy="random", seed=4, **said) as answers:
                    async for _ in answers:
                        if look:
                            answers.live()
                    return answers.live()

        return [
            (s.signature, share.destination, share.rows)
            for block in in_virtual_time(run()).blocks
            for s in block.signatures
            for share in s.shares
        ]

    assert sorted(routed(look=True)) == sorted(routed(look=False))
