"""`python -m fairtrial`"""

from fairtrial.cli.main import run

run()
