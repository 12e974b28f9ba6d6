"""Typed results and how each describes itself; results from elsewhere, from their files to a verdict. Nothing is
imported here: `results.values` is what the statistics give, so it comes before them."""
