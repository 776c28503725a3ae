"""The rules of Rummikub.

Only values and pure functions live here: no I/O, no clock, no randomness, no protobuf. Shuffles and times are
arguments, and import-linter rejects the modules that would provide them. Rule numbers (R29) and option keys
(initial_meld_threshold) in docstrings are those of docs/rules.md.

What all games share is here; the rules of a family of games are in its package (`melding`, `discard`), which `family`
names. In `melding`: an option goes to `melding.ruleset`; a rule of plays to `melding.rules`; an action to
`melding.actions` and `melding.turns`; an event to `melding.events`, `melding.evolution` and `melding.views`; a
reason to `violations` and `violation_texts`.
"""
