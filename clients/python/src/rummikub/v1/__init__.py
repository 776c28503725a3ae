"""Generated from proto/rummikub/v1 by `make proto`. Do not edit."""
