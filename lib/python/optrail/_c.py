"""optrail.h in ctypes."""

import ctypes
import ctypes.util
import operator
import os
from ctypes import POINTER, c_char_p, c_double, c_int, c_int32, c_int64, c_size_t
from ctypes import c_uint32, c_void_p

VERSION = 2  # of optrail.h, OPTRAIL_VERSION
EXACT_ONLY, MAY_COMPILE, OBSERVE_TIME = 1, 1, 1


class Error(RuntimeError):
    """What the library refused. `status` is the status's name."""

    def __init__(self, status, message):
        super().__init__(f"{status}: {message}")
        self.status = status


class Problem(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("op", c_char_p), ("shape", c_char_p),
                ("device", c_char_p), ("backend", c_char_p), ("cache_mode", c_char_p),
                ("threads", c_int32), ("flags", c_uint32)]


class Choice(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("source", c_int), ("unverified", c_int32),
                ("config", c_char_p), ("hardware_id", c_char_p), ("warning", c_char_p),
                ("shape_distance", c_double)]


class PlanOptions(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("config", c_char_p), ("allocator", c_void_p),
                ("compile_cache", c_char_p), ("flags", c_uint32)]


class Operand(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("name", c_char_p), ("type", c_char_p),
                ("role", c_int), ("rank", c_int32), ("dims", POINTER(c_int64)),
                ("bytes", c_size_t)]


class Call(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("operands", POINTER(c_void_p)),
                ("operand_count", c_size_t), ("operand_bytes", POINTER(c_size_t)),
                ("workspace", c_void_p), ("workspace_bytes", c_size_t),
                ("packed", c_void_p), ("packed_bytes", c_size_t), ("threads", c_void_p),
                ("stream", c_void_p), ("flags", c_uint32)]


# Name: (result, parameters).
_FUNCTIONS = {
    "optrail_version": (c_int32, []),
    "optrail_message": (c_char_p, []),
    "optrail_status_name": (c_char_p, [c_int]),
    "optrail_operators": (c_char_p, []),
    "optrail_hardware_id": (c_int, [c_char_p, POINTER(c_char_p)]),
    "optrail_shape_text": (c_int, [c_char_p, POINTER(c_int64), c_size_t, c_char_p,
                                   c_char_p, c_char_p, c_size_t]),
    "optrail_infer_shape": (c_int, [c_char_p, POINTER(Operand), c_size_t, c_char_p,
                                    c_char_p, c_size_t]),
    "optrail_shape_operand": (c_int, [c_char_p, c_char_p, c_size_t, POINTER(Operand),
                                      POINTER(c_size_t)]),
    "optrail_observe": (c_int, [c_char_p, c_uint32]),
    "optrail_store_open": (c_int, [c_char_p, POINTER(c_void_p)]),
    "optrail_store_close": (None, [c_void_p]),
    "optrail_store_digest": (c_char_p, [c_void_p]),
    "optrail_lookup": (c_int, [c_void_p, POINTER(Problem), POINTER(Choice)]),
    "optrail_plan_create": (c_int, [c_void_p, POINTER(Problem), POINTER(PlanOptions),
                                    POINTER(c_void_p)]),
    "optrail_plan_destroy": (None, [c_void_p]),
    "optrail_plan_choice": (c_int, [c_void_p, POINTER(Choice)]),
    "optrail_plan_workspace_bytes": (c_size_t, [c_void_p]),
    "optrail_threads_create": (c_int, [c_int32, POINTER(c_void_p)]),
    "optrail_threads_destroy": (None, [c_void_p]),
    "optrail_run": (c_int, [c_void_p, POINTER(Call)]),
}


def _load():
    path = (os.environ.get("OPTRAIL_LIBRARY") or ctypes.util.find_library("optrail") or
            "liboptrail.so.0")
    try:
        library = ctypes.CDLL(path)
        version = library.optrail_version()
    except (OSError, AttributeError) as error:
        raise ImportError(f"liboptrail cannot be loaded: {error}; next: set "
                          "OPTRAIL_LIBRARY to the path of liboptrail.so.0") from error
    if version < VERSION:
        raise ImportError(f"{path} is of version {version}, and this package needs "
                          f"{VERSION}; next: install both from one archive")
    for name, (result, parameters) in _FUNCTIONS.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, parameters
    return library


lib = _load()

# The same function as lib.optrail_run, for a handle and byref() of a Call, which are
# not looked at again: that is half of what a call costs.
run = lib["optrail_run"]
run.restype = c_int


def text(value):
    """A string, a path or None as C takes it."""
    if value is None:
        return None
    encoded = os.fsencode(value)
    if b"\0" in encoded:  # C would see what is before it
        raise ValueError(f"{value!r} has a NUL, expected none")
    return encoded


def integer(name, value, bits):
    """An integer that has room in C, where ctypes would cut it."""
    value = operator.index(value)
    if not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise ValueError(f"{name} is {value}, expected one of {bits} bits")
    return value


def dims(values):
    return (c_int64 * len(values))(*(integer("a dimension", value, 64) for value in values))


def handle(name, value, kind):
    """Of an Owner of this kind."""
    if not isinstance(value, kind):
        raise TypeError(f"{name} is a {type(value).__name__}, expected an optrail."
                        f"{kind.__name__}")
    return value.handle


def make(struct, **fields):
    return struct(struct_size=ctypes.sizeof(struct), **fields)


def check(status):
    if status != 0:
        raise Error(lib.optrail_status_name(status).decode(),
                    lib.optrail_message().decode(errors="replace"))


class Owner:
    """Has a handle, and gives it back once."""

    def __init__(self, close):
        self._close = close
        self._handle = c_void_p()

    def _out(self):
        return ctypes.byref(self._handle)

    @property
    def handle(self):
        if not self._handle:
            raise ValueError(f"this {type(self).__name__} is closed")
        return self._handle

    def close(self):
        handle, self._handle = self._handle, c_void_p()
        if handle:
            self._close(handle)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    def __del__(self):
        if getattr(self, "_handle", None):
            self.close()
