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
    try:
        run()
    except SystemExit as ended:
        if ended.code != 130:
            raise
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except (OSError, ValueError):  # nobody reads any more
            pass
        os._exit(130)  # all is saved and said: who stops a command does not wait until torch is taken apart


if __name__ == "__main__":
    main()
