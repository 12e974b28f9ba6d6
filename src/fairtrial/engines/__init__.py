"""Engines: where jobs run. In this process, on this machine's cores or on a cluster; the results are the same."""
