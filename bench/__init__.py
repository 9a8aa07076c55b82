"""The papers' experiments, and races against peers: `python -m bench NAME`, one command each.

What is compared is run side by side in one run. The last line printed is always one JSON object:
`{"bench": ..., "figures": {name: number}, "detail": ...}`.
"""
