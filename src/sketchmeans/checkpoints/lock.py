"""The lock of a checkpoint's folder, and who has made the folder: it goes with its last user."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

_TURNS = 100
"""Times that somebody looks again after others have come and gone."""
_MARK, _AT = b"made", 64
"""What says that the folder was made for a checkpoint, behind the number of the process.

It is written without the lock, by whoever made the folder though another one has it, and stays.
"""


class Lock:
    """A lock on a file, which the system releases when its process ends, however it ends.

    Parameters
    ----------
    path : path
        Of the file; ``FileNotFoundError`` where its folder is gone.
    made : bool
        Whether this process has made the folder.
    """

    def __init__(self, path: Path, made: bool) -> None:
        self.path = path
        while True:
            self._file = _opened(path, made)
            try:
                if _take(self._file):
                    if _is_at(self._file, path):
                        break
                elif _is_at(self._file, path):
                    raise _in_use(path, self._file)
                # its last owner has removed it meanwhile, and not seen the mark
            except BaseException:
                os.close(self._file)
                raise
            os.close(self._file)
        try:
            marked = _MARK in _read(self._file)  # by this process, or by one that was killed
            _write(self._file, f"{os.getpid()}".ljust(_AT - 1).encode() + b"\n", 0)
            if marked:
                _write(self._file, _MARK + b"\n", _AT)
        except BaseException:
            os.close(self._file)
            raise

    def release(self) -> bool:
        """Release it; return whether the folder was made for a checkpoint."""
        try:
            if sys.platform == "win32":
                marked = _MARK in _read(self._file)
            else:  # removed while it is held: whoever waits for it sees that it is gone
                self.path.unlink(missing_ok=True)
                marked = _MARK in _read(self._file)
        finally:
            os.close(self._file)
        if sys.platform == "win32":
            self.path.unlink(missing_ok=True)
        return marked


def remove_folder(folder: Path, lock: str) -> None:
    """Remove a folder that holds nothing; where others use it already, leave that to them."""
    for _ in range(_TURNS):
        with suppress(OSError):
            folder.rmdir()
            return
        try:
            file = os.open(folder / lock, os.O_RDWR)
        except OSError:  # gone, or full of others' files, or somebody went; another may have come
            with suppress(FileNotFoundError):
                names = os.listdir(folder)
                if not names or lock in names:
                    continue
            return
        try:
            _write(file, _MARK + b"\n", _AT)
            if _is_at(file, folder / lock):
                return
        finally:
            os.close(file)


def _opened(path: Path, made: bool) -> int:
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except IsADirectoryError:
        raise IsADirectoryError(
            f"{path} is a folder, where the lock of a checkpoint would be. Take it away, or name "
            "another folder for the checkpoint."
        ) from None
    if made:
        _write(file, _MARK + b"\n", _AT)
    return file


def _in_use(path: Path, file: int) -> BlockingIOError:
    owner = _read(file).decode(errors="replace").split("\0")[0].split()
    return BlockingIOError(
        f"the checkpoint in {path.parent} is in use by "
        f"{f'process {owner[0]}' if owner else 'another process'}: two fits cannot "
        "write to one. Wait until that has ended, or name another folder."
    )


def _is_at(file: int, path: Path) -> bool:
    """Whether a file that is open is still the one of this name."""
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(file), path.stat())
    return False


def _read(file: int) -> bytes:
    os.lseek(file, 0, os.SEEK_SET)
    return os.read(file, 2 * _AT)


def _write(file: int, text: bytes, at: int) -> None:
    os.lseek(file, at, os.SEEK_SET)
    os.write(file, text)


if sys.platform == "win32":
    import msvcrt

    def _take(file: int) -> bool:
        os.lseek(file, 4 * _AT, os.SEEK_SET)  # behind all that others read
        with suppress(OSError):
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
            return True
        return False
else:
    import fcntl

    def _take(file: int) -> bool:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
