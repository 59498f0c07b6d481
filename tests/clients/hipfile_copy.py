"""Copies a file through the (simulated) GPU with AMD's Python package, at once and in a stream, and compares hashes."""

import ctypes
import hashlib
import os
import sys
import time

import hipfile
from hipfile.hipMalloc import hipFree, hipMalloc

CHUNK = 64 << 20


def digest(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def copy(source, target, size, flags):
    memory = hipMalloc(CHUNK)
    with hipfile.Buffer.from_ctypes_void_p(memory, CHUNK, 0) as buffer:
        with hipfile.FileHandle(source, os.O_RDONLY | flags) as reader:
            with hipfile.FileHandle(target, os.O_RDWR | os.O_CREAT | os.O_TRUNC | flags) as writer:
                done = 0
                while done < size:
                    got = reader.read(buffer, min(CHUNK, size - done), done, 0)
                    assert got > 0, got
                    put = 0
                    while put < got:
                        put += writer.write(buffer, got - put, done + put, put)
                    done += got
    hipFree(memory)


def copy_in_stream(source, target, size):
    hip = ctypes.CDLL("libamdhip64.so")
    stream = ctypes.c_void_p()
    assert hip.hipStreamCreate(ctypes.byref(stream)) == 0
    memory = hipMalloc(CHUNK)
    with hipfile.Stream(stream.value), hipfile.Buffer.from_ctypes_void_p(memory, CHUNK, 0) as buffer:
        with hipfile.FileHandle(source, os.O_RDONLY) as reader:
            with hipfile.FileHandle(target, os.O_RDWR | os.O_CREAT | os.O_TRUNC) as writer:
                moved = []
                for done in range(0, size, CHUNK):
                    length = min(CHUNK, size - done)
                    moved.append((length, reader.read_async(buffer, length, done, 0, stream.value)))
                    moved.append((length, writer.write_async(buffer, length, done, 0, stream.value)))
                assert hip.hipStreamSynchronize(stream) == 0
                for length, handle in moved:
                    assert handle.bytes_done == length, (handle.bytes_done, length)
    hipFree(memory)


def main():
    folder, size = sys.argv[1], int(sys.argv[2]) << 20
    source, target = os.path.join(folder, "source"), os.path.join(folder, "target")
    with open(source, "wb") as file:
        for _ in range(size >> 20):
            file.write(os.urandom(1 << 20))
    expected = digest(source)
    print("hipfile", ".".join(map(str, hipfile.get_version())), hipfile.driver_get_properties())
    assert hipfile.supports_async()
    with hipfile.Driver():
        for name, run in [
            ("buffered", lambda: copy(source, target, size, 0)),
            ("O_DIRECT", lambda: copy(source, target, size, os.O_DIRECT)),
            ("in a stream", lambda: copy_in_stream(source, target, size)),
        ]:
            begin = time.monotonic()
            run()
            took = time.monotonic() - begin
            assert digest(target) == expected, name
            print(f"hipfile: {size >> 20} MiB {name}: equal, {took:.2f} s")
            os.unlink(target)
    try:
        hipfile.FileHandle(source, os.O_RDONLY).open()
        memory = hipMalloc(4096)
        with hipfile.FileHandle(source, os.O_RDONLY) as reader:
            with hipfile.Buffer.from_ctypes_void_p(memory, 4096, 0) as buffer:
                reader.read(buffer, 8192, 0, 0)
        raise AssertionError("a read beyond the buffer went well")
    except hipfile.HipFileException as error:
        assert error.hipfile_err == 5022, error
    os.unlink(source)


main()
