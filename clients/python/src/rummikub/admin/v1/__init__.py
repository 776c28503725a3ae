"""Generated from proto/rummikub/admin/v1 by `make proto`. Do not edit."""
