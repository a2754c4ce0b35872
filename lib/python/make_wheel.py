"""Packs the Python package as a wheel: make_wheel.py OUT HEADER FILES...

A wheel is a zip file with three descriptions; this one is the same for the same
files.
"""

import base64
import hashlib
import os
import re
import sys
import zipfile


def main():
    out, header, files = sys.argv[1], sys.argv[2], sys.argv[3:]
    with open(header, encoding="utf-8") as text:
        version = re.search(r"^#define OPTRAIL_VERSION (\d+)$", text.read(), re.M)[1]
    contents = {"optrail/" + os.path.basename(path): open(path, "rb").read()
                for path in files}
    info = f"optrail-{version}.dist-info/"
    contents[info + "METADATA"] = (
        f"Metadata-Version: 2.1\nName: optrail\nVersion: {version}\n"
        "Summary: Tuned operators on NumPy arrays, by liboptrail\n"
        "Requires-Python: >=3.8\nRequires-Dist: numpy\n").encode()
    contents[info + "WHEEL"] = (
        b"Wheel-Version: 1.0\nGenerator: optrail\nRoot-Is-Purelib: true\n"
        b"Tag: py3-none-any\n")
    record = "".join(
        f"{name},sha256={digest(data)},{len(data)}\n" for name, data in contents.items())
    contents[info + "RECORD"] = (record + info + "RECORD,,\n").encode()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, data in contents.items():
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.external_attr = 0o644 << 16
            wheel.writestr(entry, data, zipfile.ZIP_DEFLATED)


def digest(data):
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


if __name__ == "__main__":
    main()
