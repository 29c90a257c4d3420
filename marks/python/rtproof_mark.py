# SPDX-License-Identifier: MIT OR Apache-2.0
"""Marks begin and end of a cycle for `rtproof measure --workload marks:PID`.

    from rtproof_mark import Marks

    marks = Marks()
    while wait_for_cycle():
        marks.begin()
        work()
        marks.end()
    marks.close()

Through ctypes and librtproof_mark.so, which lies beside this file. Build it once:

    cc -O2 -shared -fPIC -I.. -o librtproof_mark.so librtproof_mark.c

A call through ctypes is slow beside one of C: what it takes before `end` reads the clock is part of
the duration.
"""
import ctypes
import os

_PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "librtproof_mark.so")


def _library():
    library = ctypes.CDLL(_PATH)
    library.rtproof_mark_lib_open.restype = ctypes.c_void_p
    library.rtproof_mark_lib_open.argtypes = [ctypes.c_char_p]
    for name in ("begin", "end"):
        getattr(library, "rtproof_mark_lib_" + name).argtypes = [ctypes.c_void_p]
    library.rtproof_mark_lib_close.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
    return library


class Marks:
    """The marks of one thread: open it in the thread that marks."""

    def __init__(self, word=None):
        """word tells the threads of this process apart; one with a slash is a path."""
        self._name = None if word is None else os.fsencode(word)
        self._library = _library()
        self._ring = self._library.rtproof_mark_lib_open(self._name)
        if not self._ring:
            raise OSError("no ring of marks could be made; is /dev/shm there, and the path right?")
        self._begin = self._library.rtproof_mark_lib_begin
        self._end = self._library.rtproof_mark_lib_end

    def begin(self):
        """A cycle begins now."""
        self._begin(self._ring)

    def end(self):
        """The cycle that began last ends now."""
        self._end(self._ring)

    def close(self):
        """Removes the ring. Later marks do nothing."""
        ring, self._ring = self._ring, None
        if ring:
            self._library.rtproof_mark_lib_close(ring, self._name)
