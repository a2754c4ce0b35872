"""Keeps the libraries in a folder apart from a program's: make_private.py FOLDER

Every lib*.so* there but liboptrail's own is renamed to opt*.so*, in its name,
in its SONAME and wherever another one needs it: the loader takes two libraries
of one SONAME for one. Both names have the same length, so that nothing moves.

Unique symbols become weak ones. The loader gives a symbol of binding
STB_GNU_UNIQUE one address in the whole process, RTLD_LOCAL or not, and static
variables of a program's Protobuf would stand in for ours. Weak symbols are
looked up in our own libraries first.
"""

import os
import struct
import sys

DYNSYM = 11  # SHT_DYNSYM
UNIQUE, WEAK = 10, 2  # STB_GNU_UNIQUE, STB_WEAK


def sections(data):
    """Type, begin, size and link of each section of a 64-bit ELF file."""
    first, = struct.unpack_from("<Q", data, 40)
    size, count = struct.unpack_from("<HH", data, 58)
    for at in range(first, first + size * count, size):
        kind, = struct.unpack_from("<I", data, at + 4)
        begin, length, link = struct.unpack_from("<QQI", data, at + 24)
        yield kind, begin, length, link


def make_private(path, renames):
    with open(path, "rb") as file:
        data = bytearray(file.read())
    if data[:6] != b"\x7fELF\x02\x01":
        raise SystemExit(f"{path}: not a shared object of 64 bits, little-endian")
    table = list(sections(data))
    _, symbols, length, link = next(each for each in table if each[0] == DYNSYM)
    for info in range(symbols + 4, symbols + length, 24):  # st_info of an Elf64_Sym
        if data[info] >> 4 == UNIQUE:
            data[info] = WEAK << 4 | data[info] & 15
    _, begin, length, _ = table[link]
    names = bytes(data[begin:begin + length])
    for old, new in renames.items():
        names = names.replace(b"\0" + old.encode() + b"\0", b"\0" + new.encode() + b"\0")
    data[begin:begin + length] = names
    with open(path, "wb") as file:
        file.write(data)


folder = sys.argv[1]
libraries = [name for name in sorted(os.listdir(folder)) if not name.startswith("liboptrail")]
new_names = {name: "opt" + name[len("lib"):] for name in libraries}
for each in os.listdir(folder):
    make_private(os.path.join(folder, each), new_names)
for name in libraries:
    os.rename(os.path.join(folder, name), os.path.join(folder, new_names[name]))
