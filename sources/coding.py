"""Methods with code: what is checked before it is ever called, and the wrapper that calls it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mediator.catalog.model import Field
from sources.complaint import Complaint, Where
from sources.declaration import MethodSpec
from sources.python.content import parameter_of
from wrappers import Code, CodedWrapper, CodeReader, DeclaredWrapper, Template, code_failure
from wrappers.code import Taken, is_asynchronous

_BASE = Template(path="/")


def with_code(method: MethodSpec, where: Where) -> MethodSpec:
    """The method with something in the place of what its code does, which is checked here."""
    code = method.wrapper
    if code is None:
        return method
    if method.graphql is not None:
        raise Complaint((*where, "wrapper"), "'graphql' says all of it already: leave out one of them")
    made: dict[str, Any] = {}
    for part, function, stand_in in (("request", code.request, _BASE), ("reply", code.rows, CodeReader())):
        declared = getattr(method, part) is not None
        if function is not None and declared:
            raise Complaint((*where, part), f"{code} does this already: leave out {part!r}, or its function")
        if function is None and not declared:
            raise Complaint(where, f"{part!r} is missing: add it, or a function for it to {code}")
        if function is not None:
            made[part] = stand_in
            _check_function(function, where)
    method = method.model_copy(update=made)
    if code.request is not None:
        _check_parameters(method, code.request, where)
    if code.rows is not None:
        _check_reading(code.rows, where)
    return method


def writes(method: MethodSpec) -> bool:
    """Whether code writes the requests, so that nothing is known of their form."""
    return method.wrapper is not None and method.wrapper.request is not None


def reads(method: MethodSpec) -> bool:
    """Whether code reads the replies, so that nothing but rows is found in them."""
    return method.wrapper is not None and method.wrapper.rows is not None


def wrapper_of(relation: str, fields: tuple[Field, ...], method: MethodSpec, where: Where) -> DeclaredWrapper:
    """What carries out a method."""
    parts: dict[str, Any] = {
        "relation": relation,
        "fields": fields,
        "template": method.request,
        "reader": method.reply,
        "paging": method.pages,
        "given": method.given,
        "empty_statuses": method.empty,
        "max_pages": method.max_pages,
        "rules": method.errors,
        "several": method.batch_size > 1,
    }
    code = method.wrapper
    if code is None:
        return DeclaredWrapper(**parts)
    names = {bound: parameter_of(bound) for bound in method.bound}
    return CodedWrapper(**parts, code=code, parameters=names, me=_instance(code, where))


def _instance(code: Code, where: Where) -> object:
    try:
        return code.instance()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise Complaint(
            (*where, "wrapper"),
            f"{code.owner.__name__}() failed: {code_failure(error)}: it has to be made without arguments",
        ) from None


def _check_function(function: Callable[..., object], where: Where) -> None:
    if is_asynchronous(function):
        raise Complaint(
            where,
            f"{function.__name__} is asynchronous: write plain def, for code writes requests and reads replies "
            "and the engine does the waiting",
        )


def _check_parameters(method: MethodSpec, function: Callable[..., object], where: Where) -> None:
    """The function can be called with whatever may be bound."""
    try:
        taken = Taken.by(function)
    except (ValueError, TypeError) as error:
        raise Complaint(where, str(error)) from None
    parameters = {parameter_of(bound): bound for bound in method.bound}
    always = {parameter_of(bound) for bound in method.required}
    if len(method.any_of) == 1:
        always.add(parameter_of(method.any_of[0]))
    for name, bound in parameters.items():
        if name not in (*taken.needed, *taken.optional) and not taken.others:
            raise Complaint(
                where, f"bind-field {bound!r} is never sent: give {function.__name__} a parameter {name!r}"
            )
    for name in taken.needed:
        if name not in parameters:
            raise Complaint(
                where, f"{function.__name__} takes {name!r}, which is no bind-field: declare it one"
            )
        if name not in always:
            raise Complaint(
                where, f"{name!r} is not always bound: give it a default in {function.__name__}, {name}=None"
            )


def _check_reading(function: Callable[..., object], where: Where) -> None:
    try:
        taken = Taken.by(function)
    except (ValueError, TypeError) as error:
        raise Complaint(where, str(error)) from None
    if len(taken.needed) != 1:
        raise Complaint(where, f"{function.__name__} is given one thing: write it with (self, reply)")
