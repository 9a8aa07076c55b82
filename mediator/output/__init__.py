"""Everything above the eddy: projection, DuckDB's stages, and the completeness report. Nothing here knows
asyncio."""

from mediator.output.finish import Finisher, finisher
from mediator.output.report import Failure, RelationReport, Report, merged

__all__ = ["Failure", "Finisher", "RelationReport", "Report", "finisher", "merged"]
