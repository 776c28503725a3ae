"""The rules of Rummikub.

Only values and pure functions live here: no I/O, no clock, no randomness, no protobuf. Shuffles and times are
arguments, and import-linter rejects the modules that would provide them. Rule numbers (R29) and option keys
(initial_meld_threshold) in docstrings are those of docs/rules.md.

Where to add things: an option in `ruleset` and `ruleset_checks`; a rule of plays in `rules`; an action in `actions` and
`turns`; an event in `events`, `replay` and `views`; a reason in `violations` and `violation_texts`.
"""
