"""Processes that are forked from one that has everything imported, which takes a child seconds."""

import fcntl
import multiprocessing
import os
import pty
import select
import shlex
import signal
import sys
import tempfile
import termios
import time
from contextlib import suppress

NEEDED = ("distributed", "dask.dataframe", "sketchmeans.dask", "sketchmeans.cli", "rich.progress")
"""What workers of a cluster and commands import sooner or later."""


def context():
    """Return what makes such processes; the one they come from has no thread and no test in it."""
    found = multiprocessing.get_context("forkserver")
    found.set_forkserver_preload(list(NEEDED))
    return found


TRACING = "COVERAGE_PROCESS_CONFIG"
"""The variable by which coverage traces children; who is interrupted must not be, see conftest."""


def heeding():
    """Let a child that begins heed signals: under ``nohup`` or in the background some are ignored.

    Whoever inherits that keeps to it, and so do our commands.
    """
    os.environ.pop(TRACING, None)
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


def _begin(folder, streams):
    """Take files as standard streams, in a session of its own, as a new process in a folder."""
    os.setsid()
    sys.settrace(None)  # as ``untraced`` of conftest
    heeding()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(folder)
    for number, path in enumerate(streams):
        file = os.open(path, os.O_RDWR)
        os.dup2(file, number)
        os.close(file)
    sys.stdin, sys.stdout, sys.stderr = (
        os.fdopen(number, mode, buffering=1, encoding="utf-8")
        for number, mode in enumerate(("r", "w", "w"))
    )


def _command(command, folder, terminal):
    _begin(folder, [terminal] * 3)
    with suppress(OSError):  # a system where it is that already
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    os.environ |= {"TERM": "xterm", "COLUMNS": "120"}
    _main(command)


def _main(command):
    from sketchmeans.cli import main

    sys.argv = shlex.split(command)
    main()


def ctrl_c_on_a_terminal(command, folder):
    """Run a command of ours on a terminal and press Ctrl-C once it shows progress.

    Return the exit code and what was shown after that.
    """
    master, slave = pty.openpty()
    process = context().Process(target=_command, args=(command, folder, os.ttyname(slave)))
    process.start()
    shown = b""
    while b"%" not in shown:
        ready = select.select([master], [], [], 1)[0]
        assert ready or process.is_alive(), shown
        shown = os.read(master, 4096) if ready else b""
    time.sleep(0.3)
    assert process.is_alive()  # else there would be nothing to interrupt
    os.write(master, b"\x03")
    os.close(slave)
    shown = b""
    with suppress(OSError):  # a terminal that nobody writes to any more
        while chunk := os.read(master, 4096):
            shown += chunk
    os.close(master)
    process.join(60)
    return process.exitcode, shown.decode()


def _several(commands, folder, hidden, out, terminal):
    _begin(folder, [os.devnull, out, terminal])
    for name in hidden:
        sys.modules[name] = None
    for command in commands:
        try:
            _main(command)
        except SystemExit as ended:
            if ended.code:
                raise
        for stream in (sys.stdout, sys.stderr):
            stream.write(chr(0))
            stream.flush()


def several_on_a_terminal(commands, folder, hidden=()):
    """Run commands of ours, one after the other, with a terminal as their standard error.

    Return what each wrote to both streams. Packages that are ``hidden`` are as if they were not
    installed.
    """
    master, slave = pty.openpty()
    with tempfile.NamedTemporaryFile() as file:
        given = (commands, folder, hidden, file.name, os.ttyname(slave))
        process = context().Process(target=_several, args=given)
        process.start()
        err = b""
        while err.count(b"\0") < len(commands):
            ready = select.select([master], [], [], 1)[0]
            assert ready or process.is_alive(), err
            err += os.read(master, 4096) if ready else b""
        process.join(60)
        assert process.exitcode == 0, err
        out = file.read()
    os.close(slave)
    os.close(master)
    both = (stream.decode().split(chr(0))[:-1] for stream in (out, err))
    return list(zip(*both, strict=True))
