"""`python -m trainyard.iptf`, where the `iptf` command is not on PATH."""

from trainyard.iptf.command import main

main()
