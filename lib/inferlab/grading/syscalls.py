"""Which system calls a learner's process may not make: those that lead around the sandbox's limits.

A new user namespace brings the right to mount memory as files, without end; memory behind a
descriptor or a System V key belongs to no process that could be held to a limit; keyrings are
shared by all sandboxes of one user; a socket to the host of a virtual machine knows no network
namespace; and the rest are doors to the kernel that no notebook needs.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import struct

# System calls that are refused, with their numbers on x86_64 and on aarch64.
_REFUSED = {
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "semget": (64, 190),
    "msgget": (68, 186),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
}
_CLONE = (56, 220)
_CLONE3 = 435  # its flags are out of a filter's reach: without it, the C library uses clone
_NEW_USER = 0x10000000
_SOCKET = (41, 198)
_RARE_FAMILY = 17  # address families from here on are those of packets, the kernel and the host

_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}  # column, AUDIT_ARCH_*

_LOAD, _EQUAL, _AT_LEAST, _ANY_OF, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06  # linux/bpf_common.h
_NUMBER, _MACHINE, _FIRST_ARGUMENT = 0, 4, 16  # offsets in struct seccomp_data
_ALLOW, _FAIL = 0x7FFF0000, 0x00050000
_PR_SET_SECCOMP, _MODE_FILTER = 22, 2


def refuse(call) -> None:
    """Refuse the calls above to this process and all that it starts, for good.

    call: calls a function of the C library by name and raises OSError where it fails. Needs
    no_new_privs. On a processor whose numbers are not listed here nothing is refused.
    """
    if platform.machine() not in _MACHINES:
        return
    program = _program(*_MACHINES[platform.machine()])
    code = ctypes.create_string_buffer(program, len(program))
    # struct sock_fprog: how many instructions, and where.
    header = ctypes.create_string_buffer(
        struct.pack("@HP", len(program) // 8, ctypes.addressof(code))
    )
    call("prctl", _PR_SET_SECCOMP, _MODE_FILTER, ctypes.byref(header), 0, 0)


def _program(column: int, machine: int) -> bytes:
    """The filter in the kernel's bytecode: 8 bytes an instruction."""

    def step(code, value, if_true=0, if_false=0):
        return struct.pack("=HBBI", code, if_true, if_false, value)

    def fail(number):
        return step(_RETURN, _FAIL | number)

    steps = [step(_LOAD, _MACHINE), step(_EQUAL, machine, 1, 0), fail(errno.ENOSYS)]
    steps += [step(_LOAD, _NUMBER)]
    # From here on, numbers of x86_64 mean its 32-bit pointers.
    steps += [step(_AT_LEAST, 0x40000000, 0, 1), fail(errno.ENOSYS)]
    steps += [step(_EQUAL, _CLONE3, 0, 1), fail(errno.ENOSYS)]
    for numbers in _REFUSED.values():
        steps += [step(_EQUAL, numbers[column], 0, 1), fail(errno.EPERM)]
    steps += [step(_EQUAL, _SOCKET[column], 0, 4), step(_LOAD, _FIRST_ARGUMENT)]
    steps += [step(_AT_LEAST, _RARE_FAMILY, 0, 1), fail(errno.EPERM), step(_LOAD, _NUMBER)]
    steps += [step(_EQUAL, _CLONE[column], 0, 3), step(_LOAD, _FIRST_ARGUMENT)]
    steps += [step(_ANY_OF, _NEW_USER, 0, 1), fail(errno.EPERM)]
    return b"".join([*steps, step(_RETURN, _ALLOW)])
