"""The transformer: the seam for parts, attention, blocks, networks and their loss."""
