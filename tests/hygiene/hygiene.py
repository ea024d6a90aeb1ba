#!/usr/bin/env python3
"""Rules that every source follows, a check each: layers, self-contained headers, formatting, words, paths.

usage: hygiene.py ROOT COMPILER...        (COMPILER: the C++ compiler's command line)
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from layers import violations
from tap import Tap

SOURCES = (".cpp", ".hpp", ".c", ".h", ".cu", ".cuh")
TEXTS = SOURCES + (".py", ".build", ".md", ".txt", ".map", ".sh", ".in", "")

# Marks of unfinished work; spelled so that this file does not hold them.
UNFINISHED = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|X" + r"XX|HA" + r"CK|WI" + r"P)\b")

# A path of one particular machine: somebody's home, or a workplace's mount.
MACHINE_PATH = re.compile(r"(?<![\w.$}])/(?:home|root|work|mnt|Users)/[A-Za-z0-9_.]")

MAX_LINES = 800  # of one file; kernels and tables may be longer


def tracked_files(root):
    """Files that git knows or would take; everything but build folders where there is no git."""
    git = ["git", "-c", f"safe.directory={root}", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listing = subprocess.run(git, capture_output=True, check=True, text=True).stdout
        names = [name for name in listing.split("\0") if name]
    except (OSError, subprocess.CalledProcessError):
        names = [str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()]
        names = [name for name in names if not re.match(r"(\.git|\.deps|\.venv|\.cache|build)", name)]
    return sorted({name for name in names if (root / name).is_file()})


def cuda_includes():
    nvcc = shutil.which("nvcc") or os.path.join(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "bin/nvcc")
    folder = Path(nvcc).resolve().parent.parent / "include"
    return [f"-isystem{folder}"] if (folder / "cuda.h").exists() else []


def self_contained(compiler, root, header):
    """Compiler's complaint about a file that includes nothing but `header`, twice; empty when there is none."""
    name = header.removeprefix("src/").removeprefix("include/")
    language = "c" if header.startswith("include/") else "c++"
    standard = "-std=c11" if language == "c" else "-std=c++20"
    run = subprocess.run(
        compiler + ["-x", language, standard, "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-Wno-unused",
                    f"-I{root}", f"-I{root}/src", f"-I{root}/include",
                    f"-I{root}/tests", f"-I{root}/tests/support", *cuda_includes(), "-"],
        input=f'#include "{name}"\n#include "{name}"\n', text=True, capture_output=True)
    return "" if run.returncode == 0 else run.stderr


def check_layers(tap, root, files):
    by_layer = {}
    for name in files:
        if name.endswith(SOURCES):
            found = list(violations(name, (root / name).read_text(errors="replace")))
            by_layer.setdefault("/".join(name.split("/")[:2]), []).extend(found)
    for folder, found in sorted(by_layer.items()):
        if "/" in folder:
            tap.check(f"layer rule: {folder}", not found, "\n".join(found))


def check_layer_rule_itself(tap):
    """The rule must be able to fail: a known violation of each kind is found."""
    bad = {
        "an upward include": ("src/core/x.cpp", '#include "plan/plan.hpp"\n'),
        "a CUDA header outside the device": ("src/pipeline/x.cpp", "#include <cuda_runtime.h>\n"),
        "iostream in the injected library": ("src/observe/x.cpp", "#include <iostream>\n"),
        "a relative include": ("src/os/x.cpp", '#include "../core/status.hpp"\n'),
        "a folder that is no layer": ("src/misc/x.cpp", "#include <cstdint>\n"),
    }
    for name, (path, text) in bad.items():
        tap.check(f"layer rule finds {name}", list(violations(path, text)))
    tap.check("layer rule lets a legal include pass", not list(violations("src/plan/x.cpp", '#include "core/status.hpp"\n')))


def check_headers(tap, root, files, compiler):
    headers = [name for name in files if name.endswith((".hpp", ".h")) and name.startswith(("src/", "include/", "fallback/", "tests/support/"))]
    with ThreadPoolExecutor(2) as pool:
        for header, complaint in zip(headers, pool.map(lambda name: self_contained(compiler, root, name), headers)):
            if "cuda" in complaint and "No such file" in complaint:
                tap.skip(f"header compiles alone: {header}", "no CUDA headers on this machine")
            else:
                tap.check(f"header compiles alone: {header}", not complaint, complaint[:2000])
    with tempfile.TemporaryDirectory() as folder:
        broken = Path(folder) / "broken.hpp"
        broken.write_text("inline std::size_t f() { return 0; }\n")
        tap.check("a header that lacks an include is found", self_contained(compiler, root, str(broken)))


def check_format(tap, root, files):
    tool = shutil.which("clang-format-14")
    plain = shutil.which("clang-format")
    if not tool and plain and "version 14" in subprocess.run([plain, "--version"], capture_output=True, text=True).stdout:
        tool = plain
    sources = [name for name in files if name.endswith(SOURCES)]
    if not tool:
        tap.skip("formatting", "clang-format 14 is missing")
        return
    run = subprocess.run([tool, "--dry-run", "--Werror", "--style=file"] + sources, cwd=root, capture_output=True, text=True)
    bad = sorted({line.split(":")[0] for line in run.stderr.splitlines() if "error:" in line})
    tap.check(f"formatting of {len(sources)} sources", run.returncode == 0, "scripts/format puts right:\n" + "\n".join(bad))


def check_texts(tap, root, files):
    unfinished, paths, whitespace, long_files, guards = [], [], [], [], []
    for name in files:
        path = root / name
        if path.suffix not in TEXTS or name == "LICENSE":
            continue
        text = path.read_text(errors="replace")
        lines = text.splitlines()
        for number, line in enumerate(lines, 1):
            if UNFINISHED.search(line):
                unfinished.append(f"{name}:{number}: {line.strip()}")
            if MACHINE_PATH.search(line):
                paths.append(f"{name}:{number}: {line.strip()}")
            if line != line.rstrip() and path.suffix != ".md" and not name.endswith(".in"):
                whitespace.append(f"{name}:{number}")
        if text and not text.endswith("\n"):
            whitespace.append(f"{name}: no newline at the end")
        if path.suffix in SOURCES and len(lines) > MAX_LINES and path.suffix != ".cu":
            long_files.append(f"{name}: {len(lines)} lines")
        if path.suffix == ".hpp" and "#pragma once" not in text:
            guards.append(name)
    tap.check("no marks of unfinished work", not unfinished, "\n".join(unfinished))
    tap.check("no paths of one machine", not paths, "\n".join(paths))
    tap.check("no trailing blanks, a newline at every end", not whitespace, "\n".join(whitespace))
    tap.check(f"no source longer than {MAX_LINES} lines", not long_files, "\n".join(long_files))
    tap.check("every header is guarded", not guards, "\n".join(guards))


def check_top_level(tap, files):
    """The top level is a map of the project; nothing else lies there."""
    known = {"src", "include", "fallback", "tests", "bench", "subprojects", "scripts", ".ci", "README.md", "LICENSE", "CONTRIBUTING.md",
             "meson.build", "meson_options.txt", ".gitignore", ".clang-format", ".gitattributes"}
    strange = {name.split("/")[0] for name in files} - known
    tap.check("nothing strange at the top level", not strange, ", ".join(sorted(strange)))


def check_scripts(tap, root, files):
    for name in files:
        path = root / name
        if name.startswith(("scripts/", ".ci/")) and path.read_text(errors="replace").startswith("#!/usr/bin/env bash"):
            run = subprocess.run(["bash", "-n", str(path)], capture_output=True, text=True)
            tap.check(f"bash reads {name}", run.returncode == 0 and path.stat().st_mode & 0o111, run.stderr or "not executable")


def main(root, *compiler):
    root = Path(root).resolve()
    files = tracked_files(root)
    tap = Tap()
    check_layer_rule_itself(tap)
    check_layers(tap, root, files)
    check_headers(tap, root, files, list(compiler))
    check_format(tap, root, files)
    check_texts(tap, root, files)
    check_top_level(tap, files)
    check_scripts(tap, root, files)
    tap.finish()


if __name__ == "__main__":
    main(*sys.argv[1:])
