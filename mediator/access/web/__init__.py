"""The web: connections, and what a site is not believed."""
