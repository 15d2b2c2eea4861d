"""Calls to the kernel that no task needs, refused: what is not reached does not break.

Some of them would get round other limits: memory that belongs to no process, and the keys that the
kernel keeps for a user.
"""

import contextlib
import errno
import os
import platform
import struct
from collections.abc import Iterator

_INSTRUCTION = struct.Struct("=HBBI")
_LOAD, _IF_EQUAL, _IF_AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _KILL, _REFUSE = 0x7FFF0000, 0x80000000, 0x00050000 | errno.EPERM
_AT_NUMBER, _AT_ARCHITECTURE = 0, 4
# On x86-64 the same calls have other numbers from here on.
_OTHER_NUMBERS = 0x40000000
_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
# Of each call, its number on x86-64 and on AArch64.
_REFUSED = {
    "acct": (163, 89),
    "add_key": (248, 217),
    "bpf": (321, 280),
    "finit_module": (313, 273),
    "fsopen": (430, 430),
    "init_module": (175, 105),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "msgget": (68, 186),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "perf_event_open": (298, 241),
    "personality": (135, 92),
    "pivot_root": (155, 41),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "quotactl": (179, 60),
    "reboot": (169, 142),
    "request_key": (249, 218),
    "semget": (64, 190),
    "setns": (308, 268),
    "shmget": (29, 194),
    "swapon": (167, 224),
    "syslog": (103, 116),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
}


def is_known() -> bool:
    """Whether the calls of this kind of processor are known here."""
    return platform.machine() in _ARCHITECTURES


def program(machine: str) -> bytes:
    """The filter, as the kernel takes it."""
    column = list(_ARCHITECTURES).index(machine)
    steps = [
        (_LOAD, 0, 0, _AT_ARCHITECTURE),
        (_IF_EQUAL, 1, 0, _ARCHITECTURES[machine]),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _AT_NUMBER),
        (_IF_AT_LEAST, 0, 1, _OTHER_NUMBERS),
        (_RETURN, 0, 0, _REFUSE),
    ]
    for numbers in _REFUSED.values():
        steps += [(_IF_EQUAL, 0, 1, numbers[column]), (_RETURN, 0, 0, _REFUSE)]
    steps.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(_INSTRUCTION.pack(*step) for step in steps)


@contextlib.contextmanager
def open_filter() -> Iterator[int]:
    """The filter in a pipe, from which bubblewrap reads it."""
    reading, writing = os.pipe()
    with open(writing, "wb") as file:
        # Some hundred bytes, which any pipe holds.
        file.write(program(platform.machine()))
    try:
        yield reading
    finally:
        os.close(reading)
