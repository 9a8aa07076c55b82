"""What was measured of a source, in a line: for `mediator sources`."""

from __future__ import annotations

from mediator.catalog.measured import Measured


def measured_in_words(found: Measured) -> str:
    """`p50 120 ms, p95 0.9 s; 2.1% of 340 requests failed (timed out 5); 3.1 rows per lookup (± 1.2), 300 lookups`."""
    parts = []
    if found.latency.weight:
        p50, p95, p99 = (_seconds(found.latency.quantile(q)) for q in (0.5, 0.95, 0.99))
        parts.append(f"p50 {p50}, p95 {p95}, p99 {p99}")
    requests = max(1, round(found.requests))
    failed = ", ".join(f"{kind} {max(1, round(n)):,}" for kind, n in sorted(found.errors.items()) if n >= 0.5)
    parts.append(
        f"{found.error_rate:.1%} of {requests:,} request{'s' if requests != 1 else ''} failed"
        + (f" ({failed})" if failed else "")
    )
    if found.lookups:
        lookups = max(1, round(found.lookups))
        parts.append(
            f"{found.rows.mean:.3g} rows per lookup (± {found.rows.spread:.2g}), {found.pages.mean:.2g} pages, "
            f"{found.bytes.mean / 1_000:,.3g} kB; {lookups:,} lookup{'s' if lookups != 1 else ''} of about "
            f"{found.bindings.count:,.0f} different bindings"
        )
    return "; ".join(parts)


def _seconds(seconds: float) -> str:
    return f"{1_000 * seconds:.2g} ms" if seconds < 0.1 else f"{seconds:.2g} s"
