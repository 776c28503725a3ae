"""What is stored of games: values without I/O, between the engine and the stores."""
