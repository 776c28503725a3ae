"""The rules of Rummikub, and nothing else.

What may live here: values and functions of values. No I/O, no clock, no chance, no protobuf: shuffles and clock
readings come in as arguments, and import-linter refuses the modules that would bring them in. Rule numbers (R29) and
option keys (initial_meld_threshold) in docstrings are those of docs/rules.md.
"""
