"""Starts the workers of a cluster where only they can reach each other."""

import subprocess
import sys
from pathlib import Path

from trainyard.content.lifeline import dying_with_parent
from trainyard.engine.seclusion import seclude


def main() -> None:
    workers, folder = int(sys.argv[1]), Path(sys.argv[2])
    seclude()
    children = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.engine.cluster_child", str(workers), str(slot), folder],
            preexec_fn=dying_with_parent(),
        )
        for slot in range(workers)
    ]
    sys.exit(max(abs(child.wait()) for child in children))


if __name__ == "__main__":
    main()
