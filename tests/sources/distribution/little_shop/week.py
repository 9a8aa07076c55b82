"""Is imported only by whoever asks for the bargains of the week: here to show that nobody else does."""

raise RuntimeError("the shop is closed this week")
