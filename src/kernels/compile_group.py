#!/usr/bin/env python3
"""Compiles the kernels of one architecture group into one fatbin, and wraps it for the linker.

Writes three files: the fatbin; an assembly file that puts it into .rodata under hidden symbols; and the
compiler's report of registers, shared memory, stack and spills, which a test reads. One translation unit holds
the whole group, since the driver takes one image of a fatbin.
"""
import argparse
import pathlib
import subprocess
import sys

ASSEMBLY = """\
// The fatbin of group {group}. The driver reads its header as 64-bit words.
        .section .rodata
        .balign 64
        .globl {symbol}
        .hidden {symbol}
        .type {symbol}, @object
{symbol}:
        .incbin "{fatbin}"
        .size {symbol}, . - {symbol}
        .globl {symbol}_end
        .hidden {symbol}_end
{symbol}_end:
        .byte 0
        .section .note.GNU-stack, "", @progbits
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nvcc", required=True)
    parser.add_argument("--arch", required=True, help="as nvcc spells it after sm_: 75, 90a")
    parser.add_argument("--ptx", action="store_true", help="add PTX, for architectures still to come")
    parser.add_argument("--include", action="append", default=[])
    parser.add_argument("--fatbin", required=True, type=pathlib.Path)
    parser.add_argument("--assembly", required=True, type=pathlib.Path)
    parser.add_argument("--report", required=True, type=pathlib.Path)
    parser.add_argument("--depfile", required=True, type=pathlib.Path)
    parser.add_argument("kernels", nargs="+", type=pathlib.Path)
    options = parser.parse_args()

    unit = options.fatbin.with_suffix(".cu")
    unit.write_text("".join(f'#include "{kernel.resolve()}"\n' for kernel in options.kernels))
    code = f"sm_{options.arch}" + (f",compute_{options.arch}" if options.ptx else "")
    command = [
        options.nvcc, "--fatbin", "-std=c++17", "-O3", "-lineinfo",
        # Strict IEEE single precision: FMA as written, subnormals kept, true division and roots.
        "-fmad=true", "-ftz=false", "-prec-div=true", "-prec-sqrt=true",
        "-gencode", f"arch=compute_{options.arch},code=[{code}]",
        # The host compiler only preprocesses here, so its age does not matter.
        "-allow-unsupported-compiler", "-Wno-deprecated-gpu-targets", "-Werror", "all-warnings", "-Xptxas", "-v",
        "-MD", "-MF", options.depfile, "-MT", options.fatbin,
        *[f"-I{folder}" for folder in options.include],
        "-o", options.fatbin, unit,
    ]
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if result.returncode != 0:
        sys.stderr.write(result.stdout)
        return result.returncode
    options.report.write_text(result.stdout)
    symbol = f"gemmhoist_fatbin_sm_{options.arch}"
    options.assembly.write_text(
        ASSEMBLY.format(group=f"sm_{options.arch}", symbol=symbol, fatbin=options.fatbin.resolve()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
