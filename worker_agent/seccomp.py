"""Calls to the kernel that no task needs, refused: what is not reached does not break.

Some of them would get round other limits: memory that belongs to no process, and the keys that the
kernel keeps for a user.
"""

import contextlib
import errno
import os
import platform
import socket
import struct
from collections.abc import Iterator, Sequence

_INSTRUCTION = struct.Struct("=HBBI")
_LOAD, _IF_EQUAL, _IF_AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _KILL, _REFUSE = 0x7FFF0000, 0x80000000, 0x00050000 | errno.EPERM
_NO_FAMILY = 0x00050000 | errno.EAFNOSUPPORT
# The first argument by its lower half, which is all that the kernel takes of a small number.
_AT_NUMBER, _AT_ARCHITECTURE, _AT_FIRST = 0, 4, 16
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
# What makes sockets; of other families than these, some lead past the network's own walls, such as
# to the hypervisor of a virtual machine, and none is needed.
_SOCKETS = {"socket": (41, 198), "socketpair": (53, 199)}
_FAMILIES = (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK)


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
    for numbers in _SOCKETS.values():
        # Over the families, and to the last of the two endings if it is one of them.
        steps += [(_IF_EQUAL, 0, len(_FAMILIES) + 3, numbers[column]), (_LOAD, 0, 0, _AT_FIRST)]
        steps += [(_IF_EQUAL, left, 0, one) for left, one in _counting_down(_FAMILIES)]
        steps += [(_RETURN, 0, 0, _NO_FAMILY), (_RETURN, 0, 0, _ALLOW)]
    steps.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(_INSTRUCTION.pack(*step) for step in steps)


def _counting_down(families: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Each family, and over how many instructions it leads to the call being allowed."""
    return ((len(families) - index, int(one)) for index, one in enumerate(families))


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
