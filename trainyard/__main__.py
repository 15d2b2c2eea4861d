"""`python -m trainyard` is the command `trainyard`."""

from trainyard.cli import main

main()
