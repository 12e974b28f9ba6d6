"""`python -m fairtrial`"""

import os
import sys

# Python puts the working folder first: a random.py there is not the standard library's
if sys.path[0] in ("", os.getcwd()) and os.getcwd() != os.path.dirname(os.path.dirname(os.path.abspath(__file__))):
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
