"""The archive: finished games outside of the store, as records and with all that the store had of them."""
