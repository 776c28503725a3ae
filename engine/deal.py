"""The start of a round: who starts, what everyone is dealt (R5 to R9), and the right to a new deal."""
