"""Applications built on the public names: the puzzles, the five reports, the atlas of ideas."""
