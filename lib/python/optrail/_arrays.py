"""Where the elements of a caller's array lie, checked against an operand."""

import ctypes
from ctypes import POINTER, c_int32, c_int64, c_uint8, c_uint16, c_uint64, c_void_p

# Names of NumPy. It has no bfloat16: arrays of the bits will do.
DTYPES = {"f64": ("float64",), "f32": ("float32",), "f16": ("float16",),
          "bf16": ("bfloat16", "uint16"), "i64": ("int64",), "i32": ("int32",),
          "i16": ("int16",), "i8": ("int8",), "u8": ("uint8",)}
_KINDS = {"i": "int", "u": "uint", "f": "float"}  # of __cuda_array_interface__
_CODES = {0: "int", 1: "uint", 2: "float", 4: "bfloat"}  # of DLPack
_CUDA = (2, 13)  # device types of DLPack: memory of a GPU, managed memory


class _DLTensor(ctypes.Structure):
    """The beginning of a DLManagedTensor."""
    _fields_ = [("data", c_void_p), ("device_type", c_int32), ("device_id", c_int32),
                ("ndim", c_int32), ("code", c_uint8), ("bits", c_uint8),
                ("lanes", c_uint16), ("shape", POINTER(c_int64)),
                ("strides", POINTER(c_int64)), ("byte_offset", c_uint64)]


def address(operand, array, on_gpu):
    """Of the first element. TypeError and ValueError say what was expected."""
    what = f"operand {operand.name}"
    if not on_gpu:
        return _numpy_address(what, operand, array)
    if hasattr(array, "__cuda_array_interface__"):
        return _cuda_address(what, operand, array.__cuda_array_interface__)
    if hasattr(array, "__dlpack__"):
        return _dlpack_address(what, operand, array)
    raise TypeError(f"{what} is a {type(array).__name__}, expected an array on a GPU with "
                    "__cuda_array_interface__ or __dlpack__")


def _check(what, operand, dtype, shape, dense):
    if dtype not in DTYPES[operand.type]:
        raise TypeError(f"{what} is of {dtype}, expected " +
                        " or ".join(DTYPES[operand.type]))
    if tuple(shape) != operand.dims:
        raise ValueError(f"{what} has shape {tuple(shape)}, expected {operand.dims}")
    if not dense:
        raise ValueError(f"{what} is not dense and row-major; next: "
                         "numpy.ascontiguousarray() or .contiguous()")


def _check_written(what, operand, read_only):
    if operand.role != "input" and read_only:
        raise ValueError(f"{what} is read-only, and it is written")


def _is_dense(shape, strides, step):
    for size, stride in zip(reversed(shape), reversed(strides)):
        if size > 1 and stride != step:
            return False
        step *= size
    return True


def _numpy_address(what, operand, array):
    if not hasattr(array, "__array_interface__"):
        raise TypeError(f"{what} is a {type(array).__name__}, expected a NumPy array")
    dtype = array.dtype.name if array.dtype.isnative else str(array.dtype)
    _check(what, operand, dtype, array.shape, array.flags.c_contiguous)
    _check_written(what, operand, not array.flags.writeable)
    return array.ctypes.data


def _cuda_address(what, operand, view):
    order, kind, size = view["typestr"][0], view["typestr"][1], int(view["typestr"][2:])
    dtype = f"{_KINDS.get(kind, kind)}{8 * size}"
    if order == ">" and size > 1:
        dtype = view["typestr"]
    strides = view.get("strides")
    _check(what, operand, dtype, view["shape"],
           strides is None or _is_dense(view["shape"], strides, size))
    pointer, read_only = view["data"]
    _check_written(what, operand, read_only)
    return pointer


def _dlpack_address(what, operand, array):
    device_type = array.__dlpack_device__()[0]
    if device_type not in _CUDA:
        raise ValueError(f"{what} lies on device type {device_type} of DLPack, expected 2, "
                         "a GPU")
    # -1: the producer waits for nothing. Calls come in the order of a stream.
    capsule = array.__dlpack__(stream=-1)
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = POINTER(_DLTensor), [ctypes.py_object, ctypes.c_char_p]
    tensor = get(capsule, b"dltensor").contents
    shape = tensor.shape[:tensor.ndim]
    dtype = f"{_CODES.get(tensor.code, 'type ')}{tensor.bits}"
    if tensor.lanes != 1:
        dtype += f"x{tensor.lanes}"
    _check(what, operand, dtype, shape, not tensor.strides or
           _is_dense(shape, tensor.strides[:tensor.ndim], 1))
    return (tensor.data or 0) + tensor.byte_offset
