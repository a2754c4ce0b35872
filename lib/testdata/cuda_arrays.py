"""Plans on CUDA from Python, over a driver without a GPU whose memory is the
host's and whose "map" computes relu (ops/device/cuda/testing/fake_driver.cc)."""

import ctypes
import sys

import numpy
import optrail

driver = ctypes.CDLL("libcuda.so.1")
context = ctypes.c_void_p()
COUNT = 64


class Interface:
    """An array of f32 with __cuda_array_interface__, as CuPy and Numba have it."""

    def __init__(self, **changes):
        address = ctypes.c_uint64()
        assert driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(4 * COUNT)) == 0
        self.values = numpy.ctypeslib.as_array(
            (ctypes.c_float * COUNT).from_address(address.value))
        self.__cuda_array_interface__ = {
            "shape": (COUNT,), "typestr": "<f4", "data": (address.value, False),
            "strides": None, "version": 3, **changes}


class Exchanged:
    """The same with __dlpack__ alone, as PyTorch has it for bf16."""

    def __init__(self, device_type=2):
        self.interface, self.device_type = Interface(), device_type

    def __dlpack_device__(self):
        return self.device_type, 0

    def __dlpack__(self, stream=None):
        assert stream == -1
        return self.interface.values.__dlpack__()


def refuses(kind, text, action):
    try:
        action()
    except kind as error:
        assert text in str(error), f"{error}: expected {text}"
        return
    raise SystemExit(f"nothing was refused where {text} was expected")


def make(**options):
    return optrail.Plan("relu", f"n={COUNT}/f32", device="cuda", **options)


refuses(optrail.Error, "no CUDA context", lambda: make(may_compile=True))
assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert driver.cuCtxSetCurrent(context) == 0
try:
    plan = make(may_compile=True)
except optrail.Error as error:
    if "libnvrtc" not in str(error):
        raise
    print(error)
    sys.exit()
refuses(optrail.Error, "may not compile", make)

for array in (Interface, Exchanged):
    x, y = array(), array()
    of = (lambda a: a.values) if array is Interface else (lambda a: a.interface.values)
    of(x)[:] = numpy.linspace(-1, 1, COUNT)
    stream = ctypes.c_int()
    before = driver.FakeLaunches(ctypes.byref(stream))
    assert plan(x, out=y, stream=ctypes.addressof(stream)) is y
    assert driver.FakeLaunches(ctypes.byref(stream)) == before + 1
    assert numpy.array_equal(of(y), numpy.maximum(of(x), 0))
x, y = Interface(), Interface()
refuses(ValueError, "out=", lambda: plan(x))
refuses(TypeError, "list", lambda: plan([1.0], out=y))
refuses(ValueError, "device type 1", lambda: plan(numpy.ones(COUNT, numpy.float32), out=y))
refuses(TypeError, "float64", lambda: plan(Interface(typestr="<f8"), out=y))
refuses(TypeError, ">f4", lambda: plan(Interface(typestr=">f4"), out=y))
refuses(ValueError, "(32,)", lambda: plan(Interface(shape=(32,)), out=y))
refuses(ValueError, "dense", lambda: plan(Interface(strides=(8,)), out=y))
refuses(ValueError, "read-only", lambda: plan(x, out=Interface(data=(4096, True))))
refuses(ValueError, "device type 1", lambda: plan(Exchanged(device_type=1), out=y))
refuses(optrail.Error, "overlaps", lambda: plan(x, out=x))
refuses(optrail.Error, "memory of the host",
        lambda: plan(Interface(data=(4096, False)), out=y))
print("right on a GPU that there is not")
