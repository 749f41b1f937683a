"""Programs that do nothing at the hooks of `weir trace fsync`, where functions cannot be traced: what no tracer there can go below."""
import ctypes
import os
import shutil
import subprocess
import tempfile

import table

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "empty.bpf.c")


class Empty:
    """The programs, attached inside a with statement."""

    def __init__(self):
        self.links = []

    def __enter__(self):
        if not shutil.which("clang"):
            table.lacking("there is no clang here, which compiles the empty programs")
        try:
            self.bpf = ctypes.CDLL("libbpf.so.1")
        except OSError as error:
            table.lacking(f"there is no libbpf here: {error}")
        for name in ("bpf_object__open", "bpf_object__next_program", "bpf_program__attach"):
            getattr(self.bpf, name).restype = ctypes.c_void_p
        with tempfile.TemporaryDirectory() as folder:
            compiled = os.path.join(folder, "empty.o")
            subprocess.run(["clang", "-O2", "-g", "-target", "bpf", "-c", SOURCE, "-o", compiled], check=True)
            self.object = ctypes.c_void_p(self.bpf.bpf_object__open(compiled.encode()))
        if not self.object or self.bpf.bpf_object__load(self.object) != 0:
            table.lacking("empty programs could not be loaded")
        program = None
        while program := self.bpf.bpf_object__next_program(self.object, ctypes.c_void_p(program)):
            link = self.bpf.bpf_program__attach(ctypes.c_void_p(program))
            if not link:
                self.__exit__()
                table.lacking("empty programs could not be attached")
            self.links.append(ctypes.c_void_p(link))
        return self

    def __exit__(self, *_):
        for link in self.links:
            self.bpf.bpf_link__destroy(link)
        self.bpf.bpf_object__close(self.object)
