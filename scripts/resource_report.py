"""What ptxas reports of a kernel, and the arithmetic of occupancy on it."""
import ast
import dataclasses
import re

# Of a multiprocessor: warps, blocks, registers, shared memory, and what a block's launch takes of the last; by the CUDA
# programming guide's table of compute capabilities.
LIMITS = {
    75: (32, 16, 65536, 64 * 1024, 0), 80: (64, 32, 65536, 164 * 1024, 1024), 86: (48, 16, 65536, 100 * 1024, 1024),
    89: (48, 24, 65536, 100 * 1024, 1024), 90: (64, 32, 65536, 228 * 1024, 1024), 100: (64, 32, 65536, 228 * 1024, 1024),
    120: (48, 24, 65536, 100 * 1024, 1024),
}
REGISTER_UNIT = 256  # of a warp: registers are given out in this many


@dataclasses.dataclass
class Usage:
    arch: str
    registers: int
    stack_bytes: int
    spill_bytes: int  # stores and loads
    static_shared_bytes: int


def parse(report):
    """Usages by kernel, from `ptxas -v`."""
    usages = {}
    name = arch = None
    stack = spills = 0
    for line in report.splitlines():
        if match := re.search(r"Compiling entry function '(\w+)' for 'sm_(\w+)'", line):
            name, arch = match[1], match[2]
        elif match := re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", line):
            stack, spills = int(match[1]), int(match[2]) + int(match[3])
        elif (match := re.search(r"Used (\d+) registers", line)) and name is not None:
            shared = re.search(r"(\d+) bytes smem", line)
            usages.setdefault(name, []).append(
                Usage(arch, int(match[1]), stack, spills, int(shared[1]) if shared else 0))
            name = None
    return usages


def read_build(build):
    """Usages by kernel, of every architecture group of a build folder."""
    usages = {}
    for report in sorted((build / "src" / "kernels").glob("sm_*.report")):
        for name, found in parse(report.read_text()).items():
            usages.setdefault(name, []).extend(found)
    return usages


def _value(expression):
    """Of an integer expression of literals, as descriptors have them."""
    def walk(node):
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            return node.value
        if isinstance(node, ast.BinOp):
            left, right = walk(node.left), walk(node.right)
            if isinstance(node.op, ast.Add):
                return left + right
            if isinstance(node.op, ast.Mult):
                return left * right
        raise ValueError(expression)
    return walk(ast.parse(expression.strip(), mode="eval").body)


def launch_facts(root, kernel):
    """(threads, dynamic shared bytes) of a kernel's descriptor, or None."""
    header = root / "src" / "kernels" / f"{kernel}.hpp"
    if not header.exists():
        return None
    fields = dict(re.findall(r"\.(threads|shared_bytes) = ([^,;]+),", header.read_text()))
    try:
        return _value(fields["threads"]), _value(fields["shared_bytes"])
    except (KeyError, ValueError, SyntaxError):
        return None


def blocks_per_sm(arch, registers, threads, shared_bytes):
    """Blocks that a multiprocessor holds at once, and what limits them."""
    warps, blocks, all_registers, all_shared, overhead = LIMITS[arch]
    block_warps = -(-threads // 32)
    warp_registers = -(-registers * 32 // REGISTER_UNIT) * REGISTER_UNIT
    # Registers belong to one of four schedulers, and a warp to one of them.
    by = {"warps": warps // block_warps, "blocks": blocks,
          "registers": (all_registers // 4 // warp_registers) * 4 // block_warps,
          "shared memory": all_shared // (shared_bytes + overhead) if shared_bytes + overhead else blocks}
    limit = min(by, key=by.get)
    return by[limit], limit


def text(kernel, usages, facts):
    lines = [kernel]
    for use in usages:
        line = (f"  sm_{use.arch}: {use.registers} registers, {use.stack_bytes} bytes of stack, {use.spill_bytes} bytes "
                f"spilled, {use.static_shared_bytes} bytes of static shared memory")
        number = int(re.match(r"\d+", use.arch)[0])
        if facts is not None and number in LIMITS:
            threads, shared = facts
            blocks, limit = blocks_per_sm(number, use.registers, threads, shared + use.static_shared_bytes)
            warps = LIMITS[number][0]
            line += (f"; {threads} threads and {shared} bytes of dynamic shared memory a block: {blocks} blocks an SM "
                     f"(limited by {limit}), occupancy {100 * blocks * threads / 32 / warps:.1f} %")
        lines.append(line)
    if not usages:
        lines.append("  no compiler report in this build")
    return "\n".join(lines)
