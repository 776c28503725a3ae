"""The RPCs: decode, call, encode. One file a service."""
