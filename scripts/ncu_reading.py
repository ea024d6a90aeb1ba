"""Reads Nsight Compute's raw CSV and says, top down, what holds a kernel back."""
import csv
import dataclasses
import io
import re

SECTIONS = ["SpeedOfLight", "WarpStateStats", "SchedulerStats", "Occupancy", "LaunchStats",
            "MemoryWorkloadAnalysis", "MemoryWorkloadAnalysis_Tables"]

# Units in which ncu prints a metric, by their factor to the unit that we use.
_SCALES = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "nsecond": 1e-9, "usecond": 1e-6, "msecond": 1e-3, "second": 1.0,
           "byte": 1, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9, "byte/s": 1, "Kbyte/s": 1e3, "Mbyte/s": 1e6,
           "Gbyte/s": 1e9, "Tbyte/s": 1e12, "byte/block": 1, "Kbyte/block": 1e3, "Mbyte/block": 1e6}

_STALL = re.compile(r"smsp__average_warps_issue_stalled_(\w+)_per_issue_active\.ratio")

# What a stall means, for those that kernels of this kind meet.
STALLS = {
    "barrier": "waits for the other warps at a barrier",
    "branch_resolving": "waits for a branch",
    "dispatch_stall": "the dispatcher holds back: register banks, mostly",
    "imc_miss": "a constant is not in its cache",
    "lg_throttle": "the queue of global and local memory is full",
    "long_scoreboard": "waits for global or local memory",
    "math_pipe_throttle": "the arithmetic pipe is busy: a good sign",
    "mio_throttle": "the queue of shared memory and special instructions is full",
    "no_instruction": "the next instruction is not in the instruction cache",
    "not_selected": "another warp was chosen: enough warps are ready",
    "short_scoreboard": "waits for shared memory",
    "wait": "a fixed latency",
}


@dataclasses.dataclass
class Launch:
    """One launch that was profiled: metrics by ncu's own names, in base units."""
    kernel: str
    block: str
    grid: str
    metrics: dict

    def get(self, name, default=None):
        return self.metrics.get(name, default)


def parse(text):
    """The launches of `ncu --page raw --csv`. Lines of the tool and of the program profiled are passed over."""
    rows = list(csv.reader(io.StringIO("\n".join(line for line in text.splitlines() if line.startswith('"')))))
    if len(rows) < 3:
        return []
    names, units = rows[0], rows[1]
    launches = []
    for row in rows[2:]:
        if len(row) != len(names):
            continue
        metrics, words = {}, {}
        for name, unit, value in zip(names, units, row):
            try:
                metrics[name] = float(value.replace(",", "")) * _SCALES.get(unit, 1)
            except ValueError:
                words[name] = value
        launches.append(Launch(words.get("Kernel Name", "?").split("(")[0], words.get("Block Size", ""),
                               words.get("Grid Size", ""), metrics))
    return launches


@dataclasses.dataclass
class Reading:
    """What the top-down reading prints and the CSV line keeps. Percentages are of the peak; None: not measured."""
    kernel: str
    block: int
    grid: int
    registers: int
    shared_bytes: int
    seconds: float
    compute: float
    memory: float
    levels: dict
    dram_bytes_per_s: float
    theoretical_occupancy: float
    occupancy: float
    eligible_warps: float
    issue_active: float
    stalls: list
    conflicts: float
    sectors_per_request: float

    @property
    def bound(self):
        if self.compute is None or self.memory is None:
            return "unknown"
        if max(self.compute, self.memory) < 60:
            return "neither: latency"
        return "compute" if self.compute >= self.memory else "memory"

    @property
    def level(self):
        """Of the memory system: the one nearest its limit."""
        known = {name: value for name, value in self.levels.items() if value is not None}
        return max(known, key=known.get) if known else None


def read(launch):
    def pct(name):
        return launch.get(name + ".avg.pct_of_peak_sustained_elapsed")

    def ratio(above, below):
        return launch.get(above) / launch.get(below) if launch.get(above) is not None and launch.get(below) else None

    stalls = sorted(((match[1], value) for name, value in launch.metrics.items()
                     if (match := _STALL.fullmatch(name)) and match[1] != "selected"), key=lambda s: -s[1])
    return Reading(
        kernel=launch.kernel,
        block=int(launch.get("launch__block_size", 0)), grid=int(launch.get("launch__grid_size", 0)),
        registers=int(launch.get("launch__registers_per_thread", 0)),
        shared_bytes=int(launch.get("launch__shared_mem_per_block_dynamic", 0) +
                         launch.get("launch__shared_mem_per_block_static", 0)),
        seconds=launch.get("gpu__time_duration.sum"),
        compute=pct("sm__throughput"), memory=pct("gpu__compute_memory_throughput"),
        levels={"L1 and shared memory": launch.get("l1tex__throughput.avg.pct_of_peak_sustained_active"),
                "L2": pct("lts__throughput"), "DRAM": pct("gpu__dram_throughput")},
        dram_bytes_per_s=launch.get("dram__bytes.sum.per_second") or launch.get("dram__bytes_read.sum.per_second"),
        theoretical_occupancy=launch.get("sm__maximum_warps_per_active_cycle_pct"),
        occupancy=launch.get("sm__warps_active.avg.pct_of_peak_sustained_active"),
        eligible_warps=launch.get("smsp__warps_eligible.avg.per_cycle_active"),
        issue_active=launch.get("smsp__issue_active.avg.pct_of_peak_sustained_active"),
        stalls=stalls[:3],
        conflicts=launch.get("l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"),
        sectors_per_request=ratio("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
                                  "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"),
    )


def text(reading):
    """The reading, from the top down."""
    def number(value, form, unit=""):
        return "not measured" if value is None else format(value, form) + unit

    lines = [
        reading.kernel,
        f"  time under the profiler   {number(reading.seconds and reading.seconds * 1e3, '.4f', ' ms')}",
        f"  speed of light            compute {number(reading.compute, '.1f', ' %')}, "
        f"memory {number(reading.memory, '.1f', ' %')}: bound by {reading.bound}",
        "  memory, by level          " + ", ".join(f"{name} {number(value, '.1f', ' %')}"
                                                   for name, value in reading.levels.items()) +
        (f": nearest its limit is {reading.level}" if reading.level else ""),
        f"  occupancy                 {number(reading.occupancy, '.1f', ' %')} of "
        f"{number(reading.theoretical_occupancy, '.1f', ' %')} that the launch allows "
        f"({reading.registers} registers, {reading.shared_bytes} bytes of shared memory, {reading.block} threads)",
        f"  schedulers                {number(reading.eligible_warps, '.2f')} warps eligible a cycle, issue slots "
        f"{number(reading.issue_active, '.1f', ' %')} used",
    ]
    for name, value in reading.stalls:
        lines.append(f"  stall                     {value:5.2f} warps an issue: {name}"
                     + (f" ({STALLS[name]})" if name in STALLS else ""))
    lines.append(f"  shared-memory conflicts   {number(reading.conflicts, ',.0f')}")
    lines.append(f"  global loads              {number(reading.sectors_per_request, '.2f')} sectors a request"
                 " (cp.async is not among them)")
    return "\n".join(lines)


COLUMNS = ["kernel", "flags", "arch", "registers", "spill_bytes", "shared_bytes", "block", "grid", "occupancy_pct",
           "issue_active_pct", "dram_bytes_per_s", "stall_1", "stall_2", "stall_3", "median_ms"]


def csv_row(reading, flags, arch, spill_bytes, median_ms):
    def number(value, form):
        return "" if value is None else format(value, form)

    stalls = [f"{name}:{value:.3f}" for name, value in reading.stalls] + [""] * 3
    return dict(zip(COLUMNS, [
        reading.kernel, flags, arch, reading.registers, "" if spill_bytes is None else spill_bytes,
        reading.shared_bytes, reading.block, reading.grid, number(reading.occupancy, ".2f"),
        number(reading.issue_active, ".2f"), number(reading.dram_bytes_per_s, ".4g"), *stalls[:3],
        number(median_ms, ".6f")]))


def append_csv(path, row):
    fresh = not path.exists() or path.stat().st_size == 0
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        if fresh:
            writer.writeheader()
        writer.writerow(row)
