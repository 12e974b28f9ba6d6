"""`python -m fairtrial`"""

import os
import sys
from pathlib import Path

# Python puts the working folder first: a random.py there is not the standard library's
if sys.path[0] in ("", os.getcwd()) and Path(os.getcwd()) != Path(__file__).parents[1]:
    del sys.path[0]


def main() -> None:
    try:
        from fairtrial.cli.main import run
    except KeyboardInterrupt:
        print("fairtrial: stopped", file=sys.stderr)
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
