"""Engines: where jobs run. In this process, on this machine's cores, on a Ray cluster; the answers are the same."""
