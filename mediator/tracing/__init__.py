"""A run on record: what its policies were told and what they said, so that it can be looked at and replayed.

`terms` spells arguments and results, `ground` what a policy is made from, `recording` stands before a policy and notes
every verb, `writing` brings lines to a file in a thread of its own, `trace` is one query's record, `reading` a file's,
`replaying` tells a policy once more what it was told. No value of a row is ever in a trace, only counts.
"""
