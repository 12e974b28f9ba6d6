"""`python -m fairtrial`"""

import os
import sys

try:
    here = os.getcwd()
except OSError:  # it was removed
    print("fairtrial: the working folder does not exist any more\n  change to another folder", file=sys.stderr)
    sys.exit(2)
# Python puts the working folder first: a random.py there is not the standard library's
if sys.path[0] in ("", here) and here != os.path.dirname(os.path.dirname(os.path.abspath(__file__))):
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
        from fairtrial.disk import remove_process_folder

        remove_process_folder()
        os._exit(130)  # all is saved and said: who stops a command does not wait until torch is taken apart


if __name__ == "__main__":
    main()
