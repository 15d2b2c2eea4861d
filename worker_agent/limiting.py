"""Sets limits for itself and becomes the task: `python limiting.py NAME=LIMIT… -- ARGV…`.

It runs in the sandbox, since the kernel counts a user's processes in each name space of users by
itself: there, only those of the task. It imports nothing of ours, so as to cost some milliseconds.
"""

import os
import resource
import sys


def main() -> None:
    end = sys.argv.index("--")
    for setting in sys.argv[1:end]:
        name, _, text = setting.partition("=")
        kind = getattr(resource, f"RLIMIT_{name}")
        hard = resource.getrlimit(kind)[1]
        wanted = int(text)
        if hard != resource.RLIM_INFINITY:
            wanted = min(wanted, hard)
        # A signal at the soft limit of processor time says why; at the hard one it is SIGKILL.
        spare = 1 if name == "CPU" and hard == resource.RLIM_INFINITY else 0
        resource.setrlimit(kind, (wanted, wanted + spare))
    argv = sys.argv[end + 1 :]
    try:
        os.execv(argv[0], argv)  # noqa: S606 -- there is no shell, on purpose
    except OSError as error:
        sys.exit(f"{argv[0]}: {error.strerror}")


if __name__ == "__main__":
    main()
