"""Machines whose clock is wrong, for an agent and all of its processes outside of sandboxes."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

# All that asks the C library for the time of day is told another: Python, and OpenSSL, which looks
# whether certificates are valid.
_LIBRARY = """
#define _GNU_SOURCE
#include <stddef.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *now) {
    int failed = (int)syscall(SYS_clock_gettime, clock, now);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        now->tv_sec += AHEAD_S;
    return failed;
}

time_t time(time_t *kept) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (kept != NULL) *kept = now.tv_sec;
    return now.tv_sec;
}

int gettimeofday(struct timeval *restrict kept, void *restrict zone) {
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    kept->tv_sec = now.tv_sec;
    kept->tv_usec = now.tv_nsec / 1000;
    return 0;
}
"""
# An agent's children get only what begins with PYTHON, and so each starts itself anew.
_SITE = """
import os, sys
if "LD_PRELOAD" not in os.environ:
    os.environ["LD_PRELOAD"] = {library!r}
    os.execv(sys.executable, sys.orig_argv)
"""


def wrong_clock(folder: Path, ahead_s: int) -> dict[str, str]:
    """The environment of an agent whose machine is so far ahead, or behind."""
    compiler = shutil.which("cc")
    if compiler is None:
        # A skip would pass for a run in which all of these tests were made.
        pytest.fail("a wrong clock needs a C compiler: run 'make compiler'", pytrace=False)
    folder.mkdir(parents=True, exist_ok=True)
    library = folder / "clock.so"
    subprocess.run(
        [compiler, "-shared", "-fPIC", f"-DAHEAD_S=({ahead_s})", "-xc", "-", "-o", str(library)],
        input=_LIBRARY,
        text=True,
        check=True,
    )
    (folder / "sitecustomize.py").write_text(_SITE.format(library=str(library)))
    return {"PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])}
