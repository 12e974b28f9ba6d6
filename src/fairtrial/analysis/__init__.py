"""Looking inside: what a part or a trained network does, as numbers, text and figures."""
