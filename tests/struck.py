"""Ctrl-C at a chosen step: a KeyboardInterrupt at every place where Python heeds signals."""

import dis
import sys
from functools import cache
from itertools import pairwise

HEEDING = {"CALL", "CALL_KW", "CALL_FUNCTION_EX", "JUMP_BACKWARD", "RESUME"}
"""Instructions after which Python looks for signals."""


@cache
def _places(code):
    """Return where the instructions begin that follow these."""
    found = list(dis.get_instructions(code))
    return {after.offset for before, after in pairwise(found) if before.opname in HEEDING}


class Strike:
    """Called by ``sys.settrace``: strikes once, at a step of the code in some files."""

    def __init__(self, step, files):
        self.left, self.files = step, files
        self.where = None

    def __call__(self, frame, event, _):
        code = frame.f_code
        if self.where or not code.co_filename.endswith(self.files):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode" and frame.f_lasti in _places(code):
            if self.left == 0:
                self.where = f"{code.co_filename}:{frame.f_lineno}, {code.co_name}"
                raise KeyboardInterrupt
            self.left -= 1
        return self


def strikes(work, files):
    """Call ``work`` again and again, struck at its first step, its second … until none is left.

    Give where each one struck, and what ``work`` raised.
    """
    step = 0
    while True:
        strike = Strike(step, files)
        raised = None
        sys._getframe().f_trace_opcodes = True  # Python 3.12 asks before it begins to trace
        sys.settrace(strike)
        try:
            work()
        except BaseException as error:
            raised = type(error)
        finally:
            sys.settrace(None)
        if strike.where is None:
            return
        yield strike.where, raised
        step += 1
