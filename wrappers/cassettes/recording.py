"""A transport that passes requests on, and writes down what came back."""

from __future__ import annotations

from mediator.access.web.redaction import Redaction, Redacts
from mediator.access.web.transport import Transport
from mediator.catalog.model import Mirror
from mediator.catalog.statement import Statement
from mediator.catalog.wrapper import Reply, Request
from mediator.errors import SourceError
from wrappers.cassettes.cassette import Asked, Cassette, without_login
from wrappers.cassettes.scrubbing import scrubbed_reply, scrubbed_request


class Recording:
    """What the transport below knows to be secret is left out. A request that got no reply is only counted."""

    def __init__(self, transport: Transport) -> None:
        self.cassette = Cassette()
        self.failures = 0
        self.redaction = transport.redaction if isinstance(transport, Redacts) else Redaction()
        self._transport = transport

    async def send(self, mirror: Mirror, request: Request) -> Reply:
        try:
            reply = await self._transport.send(mirror, request)
        except SourceError:
            self.failures += 1
            raise
        if not isinstance(request, Statement):
            self.cassette.bases[mirror.source] = self.redaction.clean(without_login(mirror.base))
            asked = scrubbed_request(Asked.of(mirror, request), self.redaction)
            self.cassette.add(asked, scrubbed_reply(reply, self.redaction))
        return reply
