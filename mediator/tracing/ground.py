"""What a policy is made from, as JSON and back: the query's settings, a block and its verdict, without any value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mediator.assembly import Settings
from mediator.binding.model import Input, Provider, Verdict
from mediator.catalog.model import AccessMethod, Mirror, Relation
from mediator.catalog.profile import NO_PROFILE, Profile
from mediator.eddy.policies.prior import Prior, prior_of
from mediator.query.model import Alias, Block, Column, EqualClass, Predicate
from mediator.tracing.terms import Json, Untellable, heard, told


def of_settings(settings: Settings) -> Json:
    """By name. What is no plain data is left out."""
    found = {}
    for field in fields(settings):
        try:
            found[field.name] = told(getattr(settings, field.name))
        except Untellable:
            continue
    return found


def settings_of(said: Json) -> Settings:
    known = {field.name for field in fields(Settings)}
    return Settings(**{name: heard(value) for name, value in said.items() if name in known})


def of_block(block: Block, verdict: Verdict, profile: Profile = NO_PROFILE) -> Json:
    """The aliases, what joins them, and who can provide them; of inputs which column, never which value."""
    return {
        "aliases": [{"alias": a.name, "relation": a.relation.name} for a in block.aliases],
        "classes": [[list(c) for c in k.columns] for k in block.classes],
        "constant": [k.constant is not None for k in block.classes],
        "predicates": [_predicate(p) for p in block.predicates],
        "never": block.never,
        "providers": [[_provider(p) for p in of] for of in verdict.providers],
        "chosen": [of.index(p) for of, p in zip(verdict.providers, verdict.chosen, strict=False)],
        "order": list(verdict.order),
        "prior": [[*ties_and_ends, share] for ties_and_ends, share in prior_of(block, profile).items()],
    }


def block_of(said: Json) -> Block:
    """Enough of one to make a policy from: no row can be tested with it."""
    aliases = tuple(
        Alias(number, a["alias"], Relation(a["relation"], (), ())) for number, a in enumerate(said["aliases"])
    )
    classes = tuple(
        EqualClass(tuple(Column(*c) for c in columns), constant or None)
        for columns, constant in zip(said["classes"], said["constant"], strict=True)
    )
    predicates = tuple(
        Predicate(
            p["number"],
            p["text"],
            p["aliases"],
            tuple(Column(*c) for c in p["reads"]),
            _untestable,
            costly=p["costly"],
        )
        for p in said["predicates"]
    )
    return Block(aliases, classes, predicates, (), said["never"])


def prior_in(said: Json) -> Prior:
    """What the policy believed at first; nothing, in a trace of before there were profiles."""
    return {(ties, ends): share for ties, ends, share in said.get("prior", [])}


def verdict_of(said: Json) -> Verdict:
    """Enough of one to make a policy from."""
    providers = tuple(tuple(_provided(p) for p in of) for of in said["providers"])
    chosen = tuple(of[n] for of, n in zip(providers, said["chosen"], strict=False))
    return Verdict(providers, chosen, tuple(said["order"]))


def _predicate(predicate: Predicate) -> Json:
    return {
        "number": predicate.number,
        "text": predicate.text,
        "aliases": predicate.aliases,
        "reads": [list(c) for c in predicate.reads],
        "costly": predicate.costly,
    }


def _untestable(columns: Mapping[Column, pa.Array]) -> NDArray[np.bool_]:
    raise TypeError("a predicate out of a trace knows no rows")


def _provider(provider: Provider) -> Json:
    method = provider.method
    return {
        "alias": provider.alias,
        "method": method.name,
        "kind": method.kind,
        "mirrors": [m.source for m in method.mirrors],
        "batch_size": method.batch_size,
        "rows_per_lookup": method.rows_per_lookup,
        "proves": method.proves,
        "at_most": method.at_most,
        "bind_set": list(provider.bind_set),
        "depends": provider.depends,
        "inputs": [[i.field, list(i.column) if i.column is not None else None] for i in provider.inputs],
    }


def _provided(said: dict[str, Any]) -> Provider:
    method = AccessMethod(
        said["method"],
        said["kind"],
        tuple(Mirror(source, "") for source in said["mirrors"]),
        None,
        batch_size=said["batch_size"],
        rows_per_lookup=said["rows_per_lookup"],
        proves=said["proves"],
        at_most=said["at_most"],
    )
    inputs = tuple(Input(field, Column(*column) if column else None) for field, column in said["inputs"])
    return Provider(said["alias"], method, tuple(said["bind_set"]), inputs, said["depends"])
