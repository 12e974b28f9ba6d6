"""`python -m fairtrial`"""

import sys
from pathlib import Path

if not sys.flags.safe_path and Path(sys.path[0]) != Path(__file__).parents[1]:
    del sys.path[0]  # the working folder: a random.py there is not the standard library's

from fairtrial.cli.main import run

run()
