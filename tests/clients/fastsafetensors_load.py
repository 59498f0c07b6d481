"""Loads a safetensors file into (simulated) GPU memory with the reader of fastsafetensors, and compares every tensor.

Without a deep-learning framework: what moves the bytes is the package's extension, which this calls as its loader does.
"""

import ctypes
import json
import os
import struct
import sys
import time

import numpy
from fastsafetensors import cpp

TENSORS = 16
ALIGNMENT = 4096


def make(path, size):
    """A file of random tensors, and each one's place and bytes."""
    generator = numpy.random.default_rng(1)
    each = size // TENSORS // 4
    header, data = {}, []
    for index in range(TENSORS):
        tensor = generator.integers(0, 1 << 31, each, dtype=numpy.uint32).view(numpy.float32)
        begin = index * each * 4
        header[f"tensor.{index}"] = {
            "dtype": "F32",
            "shape": [each],
            "data_offsets": [begin, begin + each * 4],
        }
        data.append(tensor)
    text = json.dumps(header).encode()
    text += b" " * (-(len(text) + 8) % ALIGNMENT)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for tensor in data:
            file.write(tensor.tobytes())
    return data


def main():
    folder, size = sys.argv[1], int(sys.argv[2]) << 20
    path = os.path.join(folder, "model.safetensors")
    data = make(path, size)
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
    cpp.load_library_functions("")
    assert cpp.is_hip_found() and cpp.is_cufile_found()
    print("fastsafetensors: memory budget", cpp.is_hipfile_memory_budget_supported())
    assert cpp.init_gds() == 0
    begin = time.monotonic()
    total = os.path.getsize(path) - 8 - length
    base = cpp.gpu_malloc(total)
    buffer = cpp.gds_device_buffer(base, total, True)
    assert buffer.cufile_register(0, total) == 0
    handle = cpp.gds_file_handle(path, True, True)
    reader = cpp.gds_file_reader(16, True, 0)
    part = 16 << 20
    requests = []
    for offset in range(0, total, part):
        want = min(part, total - offset)
        file_offset = 8 + length + offset
        request = reader.submit_read(handle, buffer, file_offset, want, offset, os.path.getsize(path))
        requests.append((request, want))
    for request, want in requests:
        got = reader.wait_read(request)
        assert got == want, (got, want)
    took = time.monotonic() - begin
    hip = ctypes.CDLL("libamdhip64.so")
    hip.hipMemcpy.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    for index, tensor in enumerate(data):
        first, last = header[f"tensor.{index}"]["data_offsets"]
        found = numpy.empty((last - first) // 4, numpy.float32)
        assert hip.hipMemcpy(found.ctypes.data, base + first, last - first, 2) == 0
        assert found.tobytes() == tensor.tobytes(), index
    assert buffer.cufile_deregister(0) == 0
    del handle, reader
    assert cpp.close_gds() == 0
    print(f"fastsafetensors: {total >> 20} MiB in {len(data)} tensors: equal, {took:.2f} s")
    os.unlink(path)


main()
