"""Conversion between protobuf messages and engine values.

Decoders check the form of a request and raise InvalidRequest, which names the field at fault; unless stated otherwise,
every decoder does. The engine decides whether a well-formed turn is legal. Encoders take views, which cannot hold a
hidden tile.
"""
