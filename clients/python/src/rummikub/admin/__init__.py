"""Generated from proto/rummikub/admin by `make proto`. Do not edit."""
