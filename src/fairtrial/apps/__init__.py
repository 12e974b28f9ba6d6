"""Applications built on the public names: the puzzles and the five reports."""
