"""Objects of the C library, freed when nothing uses them any more.

Not here: the functions that take them (_library.py).
"""

import atexit
import os
import weakref


class Native:
    """Owns one object of the C library.

    A call keeps a Native in a local variable as long as it runs, so that closing from another
    thread, or the garbage collector, frees the object only after the last call has returned.

    Args:
      what: for messages, for example "session".
      pointer: the object.
      free: the C function that frees it.
    """

    def __init__(self, what, pointer, free):
        self._what = what
        self._pointer = pointer
        self._free = free
        self._process = os.getpid()

    def pointer(self):
        """The object. RuntimeError in a forked child."""
        if not self.usable():
            raise _forked(f"the {self._what}", self._process)
        return self._pointer

    def usable(self, getpid=os.getpid):  # At exit, globals may be gone.
        """May pointer() be called? What a finalizer must ask: in a cycle, they run in any order."""
        return self._pointer is not None and self._process == getpid()

    def __del__(self):
        # A fork shares the connection, and must not say anything on it.
        if self.usable():
            pointer, self._pointer = self._pointer, None
            self._free(pointer)


def _forked(what, process):
    return RuntimeError(
        f"{what} belongs to process {process}, and this is its fork {os.getpid()}: gRPC's threads "
        "stayed behind; start workers with multiprocessing's 'spawn', or fork them before the "
        "first planewise.Client"
    )


_first_process = None


def check_not_forked():
    """RuntimeError in the fork of a process that has had a connection: gRPC would hang."""
    global _first_process
    _first_process = _first_process or os.getpid()
    if _first_process != os.getpid():
        raise _forked("planewise", _first_process)


_open_clients = weakref.WeakSet()


def close_at_exit(client):
    """Calls client.close() before the interpreter takes itself apart, if it still lives."""
    _open_clients.add(client)


@atexit.register
def _close_clients():
    for client in list(_open_clients):
        client.close()
