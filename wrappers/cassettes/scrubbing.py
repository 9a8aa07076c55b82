"""What does not go onto a cassette: secrets, and headers that are new every time."""

from __future__ import annotations

import re
from dataclasses import replace

from mediator.access.web.redaction import MARK, Redaction
from mediator.catalog.wrapper import Reply
from wrappers.cassettes.cassette import Asked

SECRET = re.compile(
    r"(?i)(^|[-_.])(authorization|authenticate|cookie2?|password|passwd|secret|session([-_]?id)?|sid|signature"
    r"|token|api[-_]?key|apikey|access[-_]?key|auth|csrf|xsrf)$"
)
_PAGING = re.compile(r"(?i)(page|next|continuation|cursor|sync)[-_]?token$")  # tokens that are no secrets
_VOLATILE = re.compile(
    r"(?i)^(date|age|expires|server|via|connection|keep-alive|transfer-encoding|content-encoding|content-length|alt-svc"
    r"|nel|report-to|reporting-endpoints|server-timing|strict-transport-security|content-security-policy.*|permissions-policy"
    r"|referrer-policy|accept-ranges|vary|x-(request|correlation|trace|amz|runtime|cache|served|timer|powered|frame|xss"
    r"|content-type-options|robots|download|permitted|varnish|github-request|b3).*|cf-.*|fly-.*|traceparent|tracestate"
    r"|request-id|x-ratelimit.*|ratelimit.*)$"
)


def is_secret(name: str) -> bool:
    """Whether a header or a parameter of this name has a value that nobody may see."""
    return SECRET.search(name) is not None and _PAGING.search(name) is None


def scrubbed_request(asked: Asked, redaction: Redaction) -> Asked:
    """The same for a request that is recorded and for one that is looked up."""

    def pairs(found: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
        return tuple((n, MARK if is_secret(n) and v else redaction.clean(v)) for n, v in found)

    return replace(
        asked,
        path=redaction.clean(asked.path),
        query=pairs(asked.query),
        headers=pairs(asked.headers),
        body=redaction.clean_bytes(asked.body),
    )


def scrubbed_reply(reply: Reply, redaction: Redaction) -> Reply:
    """The body as it is, but for secrets that are known; of the headers, those that say something about the body."""
    headers = {
        name.lower(): redaction.clean(value)
        for name, value in reply.headers.items()
        if not _VOLATILE.match(name) and not is_secret(name)
    }
    body = redaction.clean_bytes(reply.body)
    return Reply(reply.status, headers, body, address=redaction.clean(reply.address.partition("?")[0]))
