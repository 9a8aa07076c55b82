"""The durable half of the SteMs: a folder in which rows and coverage outlive the process that asked for them.

Rows lie in segments (Arrow files), and what they prove lies in a manifest (SQLite). Nothing here knows a SteM, a
query or an event loop; all times are wall-clock seconds. Why it is done in this order is told in
docs/decisions/0007-the-manifest-names-only-what-is-on-the-disk.md.
"""
