"""SQLAlchemy's own compliance suite, over a real server: `python -m pytest -c tests/client/suite/pytest.ini`."""

from __future__ import annotations

from contextlib import ExitStack

import pytest
from sqlalchemy.dialects import registry
from sqlalchemy.testing.plugin.pytestplugin import *  # noqa: F403
from sqlalchemy.testing.plugin.pytestplugin import pytest_configure as _configure

from mediator.catalog.model import Catalog
from tests.client.suite.written import Tables, WrittenDialect
from tests.http.serving import serving

registry.register("mediator.written", "tests.client.suite.written", "WrittenDialect")
registry.register("mediator", "api.client.dialect", "MediatorDialect")

_open = ExitStack()


def pytest_configure(config: pytest.Config) -> None:  # type: ignore[no-redef]
    served = _open.enter_context(serving(Catalog({})))
    WrittenDialect.tables = Tables(served)
    _open.callback(WrittenDialect.tables.close)
    _configure(config)


def pytest_unconfigure() -> None:  # type: ignore[no-redef]
    _open.close()
