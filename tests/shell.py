"""The command line: in a shell, and in this process."""

import fcntl
import os
import pty
import re
import shlex
import signal
import subprocess
import sys
import termios
import threading
import time
import warnings
from contextlib import chdir, contextmanager, nullcontext, suppress
from inspect import signature
from pathlib import Path
from unittest.mock import patch

import numpy as np
from click.testing import CliRunner

from forked import TRACING, heeding
from sketchmeans.cli import cli, main

APART = {"mix_stderr": False} if "mix_stderr" in signature(CliRunner).parameters else {}
"""What keeps the two streams of Click's runner apart; since Click 8.2 they always are."""


def environment(folder):
    """Return variables with which a shell finds the command, installed or not."""
    installed = Path(sys.executable).parent
    commands = folder / ".commands"
    if not (installed / "sketchmeans").exists():
        commands.mkdir(exist_ok=True)
        script = commands / "sketchmeans"
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m sketchmeans "$@"\n')
        script.chmod(0o755)
    paths = [str(commands), str(installed), os.environ["PATH"]]
    return {**os.environ, "PATH": os.pathsep.join(paths), "PYTHONIOENCODING": "utf-8"}


def run(command, folder, **options):
    """Run a command line in a folder, as it would be typed."""
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
        check=False,
        **options,
    )


def typed(command, folder):
    """Run a command line in this process if it is one of ours alone, and else in a shell."""
    words = shlex.shlex(command, posix=False, punctuation_chars=True)  # comments are left out
    special = [word for word in words if word[0] not in "'\"" and re.search(r"[|<>$&;*]", word)]
    ours = command.startswith("sketchmeans ") and not special
    return (here if ours else run)(command, folder)


@contextmanager
def piped(path):
    """Let standard input be a pipe that what a file holds comes through."""
    reading, writing = os.pipe()

    def write():
        with open(writing, "wb") as pipe:
            pipe.write(path.read_bytes())

    thread = threading.Thread(target=write)
    with open(reading) as stream, patch.object(sys, "stdin", stream):
        thread.start()
        yield
        thread.join()


def here(command, folder, source=None):
    """Run a command line of ours in this process, from a folder: nothing has to be imported.

    Its words are those of a shell, without pipes and redirections; what the file ``source`` holds
    is piped into it.
    """
    program, *arguments = shlex.split(command, comments=True)
    assert program == "sketchmeans"
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    with (
        chdir(folder),
        warnings.catch_warnings(),
        patch.object(sys, "argv", [program, *arguments]),
        CliRunner(**APART).isolation() as (out, err, *_),
        piped(source) if source else nullcontext(),
    ):
        try:
            main()
        except SystemExit as ended:
            code = ended.code or 0
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
            sys.stdout.flush()
            sys.stderr.flush()
        # Click before 8.2 closes both streams behind it.
        shown = [one.getvalue().decode() for one in (out, err)]
    return subprocess.CompletedProcess(command, code, *shown)


def on_a_terminal(command, **options):
    """Run a program with a terminal as its standard error; return standard output and that."""
    master, slave = pty.openpty()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=slave, **options)
    os.close(slave)
    shown = b""
    with suppress(OSError):  # a terminal that nobody writes to any more
        while chunk := os.read(master, 4096):
            shown += chunk
    out = process.stdout.read().decode()
    assert process.wait() == 0, shown
    return out, shown.decode()


def ctrl_c_on_a_terminal(command, folder):
    """Run a command on a terminal of its own and press Ctrl-C once it shows progress.

    Return the exit code and what was shown after that.
    """
    master, slave = pty.openpty()

    def begin():
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        heeding()

    process = subprocess.Popen(
        ["bash", "-c", f"exec {command}"],
        cwd=folder,
        env=environment(folder) | {"TERM": "xterm", "COLUMNS": "120", TRACING: ""},
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
        preexec_fn=begin,
    )
    os.close(slave)
    while b"%" not in os.read(master, 4096):
        pass
    time.sleep(0.3)
    assert process.poll() is None  # else there would be nothing to interrupt
    os.write(master, b"\x03")
    shown = b""
    with suppress(OSError):
        while chunk := os.read(master, 4096):
            shown += chunk
    return process.wait(timeout=60), shown.decode()


def start(program, folder, **options):
    """Start Python on a program in a folder; what it prints can be read while it runs."""
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **options}
    return subprocess.Popen([sys.executable, *program], cwd=folder, preexec_fn=heeding, **options)


def end(process, *signals):
    """Send signals, one soon after the other; return the exit code and standard error.

    Whatever the signal, there are no results and no traceback.
    """
    for number in signals:
        process.send_signal(number)
        time.sleep(0.01)
    out, err = process.communicate(timeout=60)
    assert out == ""
    assert "Traceback" not in err
    return process.returncode, err


def end_during_fit(folder, options, *signals):
    """Cluster a large data.npy in the folder, and end that soon after the fit began."""
    np.save(folder / "data.npy", np.random.default_rng(0).normal(size=(150_000, 20)))
    program = ["-m", "sketchmeans", "cluster", "data.npy", "-k", "5", "-v", *options]
    process = start(program, folder)
    assert process.stderr.readline().startswith("prepare: done")
    time.sleep(0.5)
    begin = time.monotonic()
    ended = end(process, *signals)
    assert time.monotonic() - begin < 20
    return ended


def sketchmeans(*arguments, code=0):
    """Run a command in this process, and return what it printed."""
    result = CliRunner(**APART).invoke(cli, [str(argument) for argument in arguments])
    assert result.exit_code == code, (result.stdout, result.stderr, result.exception)
    return result
