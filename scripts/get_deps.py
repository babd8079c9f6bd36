#!/usr/bin/env python3
"""Fetch the pinned math libraries (deps.txt) and unpack what a C++ build needs.

    get_deps.py PREFIX

PREFIX gets include/ and lib/ (oneDNN), openblas/ (OpenBLAS with the prefix scipy_) and licenses/.
Nothing is installed into any Python. PREFIX/STAMP holds the pins that were unpacked; while it
equals deps.txt there is nothing to do.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

PINS = pathlib.Path(__file__).with_name("deps.txt")

# Path inside a wheel -> path below PREFIX. The wheels hold three copies of libdnnl.so.
LAYOUT = [
    (r"[^/]+\.data/data/(include/.+)", r"\1"),
    (r"[^/]+\.data/data/(lib/libdnnl\.so\.3)", r"\1"),
    (r"[^/]+\.data/data/share/doc/onednn/(.+)", r"licenses/onednn/\1"),
    (r"scipy_openblas32/(include/.+|lib/lib[^/]+)", r"openblas/\1"),
    (r"scipy_openblas32-[^/]+/licenses/(.+)", r"licenses/openblas/\1"),
]


def destination(name):
    for pattern, target in LAYOUT:
        match = re.fullmatch(pattern, name)
        if match and not name.endswith("/"):
            return match.expand(target)
    return None


def unpack(wheel, prefix):
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            target = destination(name)
            if target is None:
                continue
            path = prefix / target
            path.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(name) as source, open(path, "wb") as out:
                shutil.copyfileobj(source, out)


def fetch(prefix):
    """Builds the tree beside PREFIX and moves it there, so that PREFIX is never half filled."""
    prefix.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=prefix.parent, prefix="deps-") as scratch:
        wheels = pathlib.Path(scratch, "wheels")
        tree = pathlib.Path(scratch, "tree")
        tree.mkdir()
        subprocess.check_call([
            sys.executable, "-m", "pip", "download", "--quiet", "--no-deps",
            "--only-binary=:all:", "--require-hashes", "--requirement", str(PINS),
            "--dest", str(wheels),
        ])
        for wheel in sorted(wheels.glob("*.whl")):
            unpack(wheel, tree)
        (tree / "lib/libdnnl.so").symlink_to("libdnnl.so.3")
        (tree / "STAMP").write_text(PINS.read_text())
        if prefix.exists():
            shutil.rmtree(prefix)
        os.rename(tree, prefix)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    prefix = pathlib.Path(sys.argv[1]).resolve()
    stamp = prefix / "STAMP"
    if stamp.exists() and stamp.read_text() == PINS.read_text():
        return
    if os.uname().machine != "x86_64":
        sys.exit(f"get_deps.py: the pinned libraries are for x86_64, not {os.uname().machine}")
    print(f"unpacking math libraries into {prefix}", flush=True)
    fetch(prefix)


if __name__ == "__main__":
    main()
