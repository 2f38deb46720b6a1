"""The native part as a shared library, beside those of others."""

import struct
import sys

import pytest

from quipu import _quipu

DT_FLAGS = 30
DF_STATIC_TLS = 0x10
PT_DYNAMIC = 2


@pytest.mark.skipif(sys.platform != "linux" or sys.maxsize < 2**32, reason="reads 64-bit ELF files")
def test_it_leaves_the_room_for_variables_of_threads_to_others():
    # Libraries that claim it cannot be loaded once it is used up; PyTorch brings one.
    with open(_quipu.__file__, "rb") as file:
        header = file.read(64)
        assert header[:5] == b"\x7fELF\x02"
        (offset,), (size, count) = struct.unpack_from("<Q", header, 32), struct.unpack_from("<HH", header, 54)
        file.seek(offset)
        segments = [struct.unpack_from("<IIQQQQ", file.read(size)) for _ in range(count)]
        (dynamic,) = (segment for segment in segments if segment[0] == PT_DYNAMIC)
        file.seek(dynamic[2])
        entries = list(struct.iter_unpack("<qQ", file.read(dynamic[5])))
    assert entries[-1] == (0, 0) or (0, 0) in entries
    assert not any(tag == DT_FLAGS and value & DF_STATIC_TLS for tag, value in entries)
