"""The papers' experiments: `python -m bench paper NAME [--json] [--plot [FILE]]`."""
