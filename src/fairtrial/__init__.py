"""fairtrial: a fair trial for every transformer idea."""

__version__ = "0.1.0"
