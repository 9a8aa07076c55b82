"""What sources and queries allow: how many requests, how fast, at what price. None of it opens a connection."""
