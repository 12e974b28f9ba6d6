"""The command line: parse, call, print. Imports stand inside commands, so that `fairtrial --help` answers at once."""
