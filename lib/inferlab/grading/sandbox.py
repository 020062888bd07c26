"""A bubblewrap sandbox, and how a process that has already imported everything enters it.

Starting Python and importing SymPy, NumPy and Matplotlib costs more than running a submission, so
the imports are done once, in a process that only ever runs this library. For each submission
bubblewrap makes fresh namespaces (files, processes, network, IPC), a fork of that process enters
them, gives up all privileges and only then runs the learner's code. The fork holds no secret: the
answers are compared elsewhere.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from importlib import resources
from pathlib import Path

from inferlab.grading import syscalls
from inferlab.quantities import InputError
from inferlab.runtime.fetch import model_directory

# As root a sandbox runs under this user and group, which own nothing; limits on the number of
# processes do not hold for root.
NOBODY = 60_001

HOME = "/sandbox"  # where the learner's code runs, an empty folder in memory

WAITING = 4  # how much more time on the clock than on the CPU

_NEW_NAMESPACES = {  # from linux/sched.h
    "mount": 0x00020000,
    "cgroup": 0x02000000,
    "uts": 0x04000000,
    "ipc": 0x08000000,
    "user": 0x10000000,
    "process": 0x20000000,
    "network": 0x40000000,
}
_PR_SET_DUMPABLE, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT = 4, 24, 38, 47
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class Limits:
    """What a submission may use. Times in seconds, sizes in bytes.

    cell_s: CPU time of one cell, so that a busy machine takes nothing from a learner. total_s: that
    of the whole notebook, each time it is run. Time on the clock, for cells that wait, is WAITING
    times as much. memory: address space of one process, and resident memory of all. file: one file.
    processes: at once.
    """

    cell_s: float = 60
    total_s: float = 300
    memory: int = 3 * 2**30
    file: int = 64 * 2**20
    disk: int = 256 * 2**20
    processes: int = 64
    open_files: int = 256

    def as_dict(self) -> dict:
        """The limits by name, as they are sent to a worker."""
        return asdict(self)


def _readable_paths() -> list[Path]:
    """What the sandbox shows besides /usr: this Python, its packages, this library, the model."""
    package = Path(str(resources.files("inferlab"))).resolve()
    paths = {Path(sys.prefix), Path(sys.base_prefix), package}
    with contextlib.suppress(RuntimeError):  # nobody's home, where a model could lie, is known
        paths.add(model_directory().resolve())
    paths |= {Path(p) for p in sys.path if Path(p).name in ("site-packages", "dist-packages")}
    outside_usr = [path for path in paths if not path.is_relative_to("/usr") and path.is_dir()]
    return sorted(outside_usr, key=lambda path: len(path.parts))


def command(limits: Limits, report: int) -> list[str]:
    """The bubblewrap command of a sandbox that waits to be entered.

    report: a file descriptor on which bubblewrap says which process it made.
    """
    package = Path(str(resources.files("inferlab"))).resolve()
    words = ["bwrap", "--die-with-parent", "--new-session", "--clearenv", "--cap-drop", "ALL"]
    if os.getuid() != 0:
        words.append("--unshare-user")
    words += ["--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"]
    words += ["--unshare-cgroup-try", "--hostname", "grader", "--ro-bind", "/usr", "/usr"]
    for name in ("bin", "sbin", "lib", "lib32", "lib64"):
        link = Path("/", name)
        if link.is_symlink():
            words += ["--symlink", os.readlink(link), str(link)]
        elif link.is_dir():
            words += ["--ro-bind", str(link), str(link)]
    words += ["--perms", "0755", "--dir", "/etc"]
    for path in ("/etc/ld.so.cache", "/etc/fonts", "/etc/localtime", "/etc/alternatives"):
        words += ["--ro-bind-try", path, path]
    words += ["--proc", "/proc", "--dev", "/dev", "--remount-ro", "/dev"]
    for place in ("/tmp", HOME):
        words += ["--perms", "1777", "--size", str(limits.disk), "--tmpfs", place]
    for path in _readable_paths():
        # Folders that bubblewrap makes on its own are closed to others.
        for parent in reversed(path.parents[:-1]):
            words += ["--perms", "0755", "--dir", str(parent)]
        words += ["--ro-bind", str(path), str(path)]
    # Neither sealed answers nor the grader itself.
    for room in ("feedback/seals", "grading"):
        words += ["--tmpfs", str(package / room), "--remount-ro", str(package / room)]
    words += ["--remount-ro", "/", "--chdir", HOME, "--info-fd", str(report), "--"]
    return [*words, "/bin/sh", "-c", f"echo ready; exec sleep {WAITING * limits.total_s + 60:.0f}"]


def usage_of(process: int, *, exact: bool = False) -> tuple[int, float]:
    """Bytes of memory, and seconds of CPU, that one process uses.

    exact: share out the pages that several processes have in common, which takes longer; without it
    a fork counts as much as its parent.
    """
    with open(f"/proc/{process}/status") as file:  # of one that has just ended, without sizes
        sizes = re.findall(r"^Rss(?:Anon|Shmem):\s+(\d+) kB$", file.read(), re.MULTILINE)
    memory = sum(map(int, sizes)) * 1024
    if exact:
        with contextlib.suppress(OSError), open(f"/proc/{process}/smaps_rollup") as file:
            shared_out = next(line for line in file if line.startswith("Pss:"))
            memory = int(shared_out.split()[1]) * 1024
    with open(f"/proc/{process}/stat") as file:
        # The name, in brackets, may hold anything; user and system time come 12th after it.
        user, system = map(int, file.read().rpartition(")")[2].split()[11:13])
    return memory, (user + system) / os.sysconf("SC_CLK_TCK")


class Sandbox:
    """Fresh namespaces made by bubblewrap, kept alive by a sleeping process.

    Raises InputError when none can be made on this machine.
    """

    def __init__(self, limits: Limits):
        self.first_process = 0
        if shutil.which("bwrap") is None:
            raise InputError(
                "bubblewrap is not installed, so submissions cannot be run safely: install it (apt"
                " install bubblewrap), or pass --unsafe-no-sandbox for notebooks that you trust"
            )
        receive, send = os.pipe()
        self._process = subprocess.Popen(
            command(limits, report=send),
            pass_fds=[send],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        os.close(send)
        ready = self._process.stdout.readline()
        if ready.strip() != b"ready":
            reason = self._process.stderr.read().decode(errors="replace").strip()
            os.close(receive)
            self.close()
            raise InputError(
                f"no sandbox can start here ({reason or 'bubblewrap failed'}): grade on a machine where"
                " bubblewrap runs, or pass --unsafe-no-sandbox for notebooks that you trust"
            )
        self.first_process = json.loads(os.read(receive, 65_536))["child-pid"]
        os.close(receive)
        self.sleeper = self._child_of(self.first_process)

    @staticmethod
    def _child_of(parent: int) -> int:
        # The kernel may leave a running child out of this list: ask again.
        children = Path(f"/proc/{parent}/task/{parent}/children")
        for _ in range(1000):
            found = children.read_text().split()
            if found:
                return int(found[0])
            time.sleep(0.001)
        raise InputError("no sandbox can start here: bubblewrap ran no command; see bwrap(1)")

    def close(self) -> None:
        """End every process in the sandbox."""
        if self.first_process:  # with it ends its whole process namespace
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.first_process, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        self._process.wait()
        for stream in (self._process.stdout, self._process.stderr):
            stream.close()

    def usage(self, *, exact: bool = False) -> tuple[int, float]:
        """Bytes of memory, and seconds of CPU, that the sandbox's processes use; see `usage_of`."""
        inside = os.stat(f"/proc/{self.first_process}/ns/pid").st_ino
        memory, seconds = 0, 0.0
        for entry in os.scandir("/proc"):
            if entry.name.isdigit():
                with contextlib.suppress(OSError, ValueError, IndexError):
                    if os.stat(f"/proc/{entry.name}/ns/pid").st_ino == inside:
                        process = usage_of(int(entry.name), exact=exact)
                        memory, seconds = memory + process[0], seconds + process[1]
        return memory, seconds

    def enter(self) -> None:
        """Move the calling process into the sandbox; it takes effect in its next fork.

        To be called by a single-threaded fork that runs nothing else after it.
        """
        wanted = set(_NEW_NAMESPACES) - (set() if os.getuid() else {"user"})
        if (
            os.stat("/proc/self/ns/cgroup").st_ino
            == os.stat(f"/proc/{self.sleeper}/ns/cgroup").st_ino
        ):
            wanted.discard("cgroup")
        flags = sum(_NEW_NAMESPACES[name] for name in wanted)
        handle = os.pidfd_open(self.sleeper)
        _call("setns", handle, flags)
        os.close(handle)
        os.chdir(HOME)


def give_up_privileges(limits: Limits, keep: int) -> None:
    """Close every descriptor but `keep`, drop all privileges, set the limits. There is no way back."""
    null = os.open("/dev/null", os.O_RDWR)
    for standard in (0, 1, 2):
        if standard != keep:
            os.dup2(null, standard)
    os.closerange(3, keep)
    os.closerange(max(keep, 2) + 1, 65_536)
    os.setsid()
    os.umask(0o077)
    os.environ.clear()
    os.environ.update(
        HOME=HOME,
        TMPDIR="/tmp",
        PATH="/usr/bin:/bin",
        LANG="C.UTF-8",
        MPLCONFIGDIR="/tmp/matplotlib",
        IPYTHONDIR="/tmp/ipython",
        OPENBLAS_NUM_THREADS="1",
        OMP_NUM_THREADS="1",
    )
    for limit, value in (
        (resource.RLIMIT_AS, limits.memory),
        (resource.RLIMIT_FSIZE, limits.file),
        (resource.RLIMIT_NOFILE, limits.open_files),
        (resource.RLIMIT_NPROC, limits.processes),
        (resource.RLIMIT_CPU, int(limits.total_s) + 1),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(limit, (value, value))
    for capability in range(64):
        # The first number that the kernel does not know ends the list.
        if _LIBC.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0) != 0:
            break
    _call("prctl", _PR_CAP_AMBIENT, 4, 0, 0, 0)
    if os.getuid() == 0:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)  # _LINUX_CAPABILITY_VERSION_3, this process
    _call("capset", header, (ctypes.c_uint32 * 6)())
    _call("prctl", _PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    syscalls.refuse(_call)
    # The change of user has hidden this process from the grader, which has to watch its memory.
    _call("prctl", _PR_SET_DUMPABLE, 1, 0, 0, 0)


def limit_only(limits: Limits, keep: int) -> None:
    """Set limits of time and memory without a sandbox, for notebooks that are trusted."""
    null = os.open("/dev/null", os.O_RDWR)
    for standard in (0, 1, 2):
        if standard != keep:
            os.dup2(null, standard)
    resource.setrlimit(resource.RLIMIT_AS, (limits.memory, limits.memory))
    resource.setrlimit(resource.RLIMIT_CPU, (int(limits.total_s) + 1,) * 2)


_LIBC = ctypes.CDLL(None, use_errno=True)


def _call(function: str, *arguments) -> None:
    if getattr(_LIBC, function)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{function}: {os.strerror(number)}")


def end_with_parent() -> None:
    """Have the calling process killed when its parent ends, however that happens."""
    _call("prctl", _PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def require() -> None:
    """Raise InputError, with the remedy, unless a sandbox can be made and entered here."""
    if not hasattr(os, "pidfd_open"):
        raise InputError(
            "submissions are run on Linux only: grade in a Linux machine or container, or pass"
            " --unsafe-no-sandbox for notebooks that you trust"
        )
    # In a process of its own: only one with a single thread may enter.
    tried = subprocess.run(
        [sys.executable, "-m", "inferlab.grading.sandbox"], capture_output=True, text=True
    )
    if tried.returncode != 0:
        raise InputError(tried.stdout.strip() or tried.stderr.strip().splitlines()[-1])


def _try() -> int:
    """Make a sandbox and enter it; 0, or 1 with the reason on standard output."""
    try:
        box = Sandbox(Limits())
    except InputError as error:
        print(error)
        return 1
    child = os.fork()
    if child == 0:
        code = 1
        try:
            box.enter()
            inside = os.fork()
            if inside == 0:
                give_up_privileges(Limits(), keep=2)
                os._exit(0)
            code = os.waitstatus_to_exitcode(os.waitpid(inside, 0)[1])
        except OSError as error:
            print(
                f"a sandbox starts here but cannot be entered ({error}): grade on Linux 5.8 or later,"
                " or pass --unsafe-no-sandbox for notebooks that you trust",
                flush=True,
            )
        os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    box.close()
    return code


if __name__ == "__main__":
    sys.exit(_try())
